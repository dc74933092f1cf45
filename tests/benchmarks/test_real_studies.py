"""What benchmarks tell of real studies: what they cost, and what their winner is worth."""

import pytest

from autotune.errors import ExitCode
from benchmarks.paces.studies import cost
from benchmarks.verdicts.pwx_neighbour import Ended


def run(series, elapsed_s, cpus):
    return {
        "series": series,
        "outcome": {"usage": {"elapsed_s": elapsed_s}},
        "job": {"resources": {"cpus": cpus}},
    }


def test_runs_that_compare_are_no_part_of_what_tuning_costs():
    shown = {
        "speed_up": {"ratio": 1.23456, "low": 1.1, "high": 1.4},
        "best": {"configuration": {"ranks": 2, "pin": "on"}},
    }
    runs = [run("tune", 3.0, [0, 1]), run("short:200", 0.5, [0]), run("select:1", 4.0, [0, 1]), run("duet", 2.0, [1])]
    told = cost("lammps", 7, "short and whole runs", shown, runs)
    assert (told.runs, told.tuning_core_s, told.all_core_s) == (4, 6.5, 16.5)
    assert told.line() == (
        "lammps, seed 7, short and whole runs: 4 runs; core-seconds: tuning 6, all 16; "
        "over the default: 1.235 (1.100 to 1.400); ranks=2 pin=on"
    )


def ended(exit_code, told, alone):
    return Ended("cpu", 0.5, "wait", 0, exit_code, told, alone, runs=80, aside=7, core_s=400.0, wall_s=200.0)


@pytest.mark.parametrize(
    ("told", "alone", "used"),
    [((1.5, 1.4, 1.6), 1.45, 1.45), ((1.02, 0.97, 1.08), 1.3, 1.0), (None, None, 1.0)],
    ids=["a sure gain", "no sure gain", "no verdict"],
)
def test_only_a_gain_that_is_sure_is_used(told, alone, used):
    assert ended(0, told, alone).used == used


def test_a_refused_study_is_near_the_best_only_where_there_is_nothing_to_gain():
    refused = ended(ExitCode.CANNOT_RUN_HERE, None, None)
    assert "refused; told none; alone none; near no; 80 runs, 7 set aside" in refused.line(best=1.45)
    assert "near yes" in refused.line(best=1.0)
