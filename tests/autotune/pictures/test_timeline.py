"""When and where runs were made."""

from dataclasses import replace

import pytest

from autotune.pictures.chart import Role
from autotune.pictures.files import save
from autotune.pictures.timeline import timeline
from autotune.records.outcome import DISTURBED
from autotune.records.series import TUNING, Series, SeriesKind
from autotune.records.study import Run
from objectives.base import FailureKind
from tests.autotune.pictures.studies import summary, trial
from tests.support.fakes import capped, failed, took

NOTHING = summary(trial(0, took(1.0)))


def run(number, second, outcome, *cpus, host="node1", **more):
    started = f"2026-03-01T10:00:{second:02}+00:00"
    job = {"resources": {"cores": max(1, len(cpus)), "cpus": list(cpus), "hosts": [host], **more}}
    return Run({"np": 2}, number, outcome=outcome, started=started, job=job)


RUNS = [
    run(0, 0, took(10.0), 0, 1),
    run(1, 5, took(10.0), 2, 3),
    run(2, 30, capped(4.0), 0, 1),
    run(3, 34, replace(failed(FailureKind.TIMED_OUT, "too long"), usage=took(6.0).usage), 2, 3),
]


def test_each_run_is_a_bar_from_its_start_to_its_end_in_its_lane():
    chart = timeline(NOTHING, RUNS)
    (panel,) = chart.panels
    assert [label for _, label in panel.y.ticks] == ["node1: cores 0 to 1", "node1: cores 2 to 3"]
    marks = {mark.role: mark for mark in panel.marks}
    tuning = marks[Role.TRIAL]
    assert list(zip(tuning.y, tuning.starts, tuning.values, strict=True)) == [(0.0, 0.0, 10.0), (1.0, 5.0, 15.0)]
    assert (marks[Role.CAPPED].starts, marks[Role.FAILED].values) == ((30.0,), (40.0,))
    assert marks[Role.FAILED].hover[0].startswith("trial 3: timed out: too long")
    assert "4 runs in 40 s, with at least one run going for 62% of that time" in chart.description
    assert "Failed runs took 20% of the core-seconds." in chart.description
    assert chart.table.rows[0] == ("node1: cores 0 to 1", 1, 0, 1, 0, 0, 35.0)


def test_lanes_are_cards_or_hosts_where_nothing_else_is_known():
    card = {"name": "GPU-1234-5678-9012"}
    runs = [run(0, 0, took(1.0), cards=[card]), run(1, 1, took(1.0), host="node2"), run(2, 2, took(1.0), 0, 2, 5)]
    (panel,) = timeline(NOTHING, runs).panels
    assert [label for _, label in panel.y.ticks] == ["node1: card GPU-1234-567", "node1: cores 0, 2, 5", "node2"]


def test_comparisons_and_tuning_have_different_roles():
    compared = replace(RUNS[1], series=Series(SeriesKind.VERDICT, ("1",)))
    assert [mark.role for mark in timeline(NOTHING, [RUNS[0], compared]).panels[0].marks] == [Role.TRIAL, Role.MEASURED]


@pytest.mark.parametrize("outcome", [took(10.0), capped(4.0)])
def test_a_run_that_was_set_aside_is_not_called_failed(outcome):
    disturbed = replace(RUNS[1], series=TUNING.aside, outcome=outcome.set_aside(DISTURBED, "was disturbed"))
    chart = timeline(NOTHING, [RUNS[0], disturbed])
    assert [mark.label for mark in chart.panels[0].marks] == ["tuning", "set aside"]
    assert "Failed runs" not in chart.description


def test_replays_and_runs_without_a_start_have_none():
    replay = replace(NOTHING, definition=replace(NOTHING.definition, objective="replay"))
    assert timeline(replay, RUNS) is None
    assert timeline(NOTHING, [replace(one, started="") for one in RUNS]) is None
    assert timeline(NOTHING, RUNS[:1]) is None


@pytest.mark.slow
def test_it_is_drawn_and_many_runs_are_thinned(tmp_path):
    many = [run(k, k % 60, took(0.5), k % 40) for k in range(4000)]
    chart = timeline(NOTHING, many)
    assert sum(len(mark.y) for mark in chart.panels[0].marks) <= 1500
    assert "The 24 busiest of 40 lanes" in chart.description
    save(chart, tmp_path / "timeline.png")
    assert (tmp_path / "timeline.png").stat().st_size > 1000
