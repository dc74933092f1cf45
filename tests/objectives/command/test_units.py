"""Figures with units: runs that print different units are compared in the declared one, or refused."""

from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import InvalidResult, Metric, Output
from tests.objectives.command.plans import errors, planned


def measured(text: str, **metric: object) -> float:
    objective = planned(metrics=[{"name": "x", **metric}]).objective
    status = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(2.5))
    return objective.measure(Output(text, "", status, Path("/nowhere"))).metrics["x"]


def test_two_runs_that_print_different_units_are_compared_in_the_declared_one():
    pattern = r"Wall-clock +\| (\S+)"
    assert measured("Wall-clock   | 950.40 ms\n", pattern=pattern, unit="s") == pytest.approx(0.9504)
    assert measured("Wall-clock   | 1.21 s\n", pattern=pattern, unit="s") == 1.21


@pytest.mark.parametrize(
    ("text", "pattern", "value"),
    [
        ("time (ms): 950", r"time \((?P<unit>\w+)\): (\S+)", 0.95),
        ("950 / ms", r"(\d+) / (?P<unit>\w+)", 0.95),
        ("950", r"(\d+)(?: / (?P<unit>\w+))?", 950.0),
        ("PWSCF  :  1m52.55s CPU  2h 5m WALL", r"CPU\s+(\S+)", 7500.0),
        ("elapsed 0.1250D+02 s", r"elapsed ([\d.]+)", 12.5),
    ],
)
def test_a_pattern_may_find_the_unit_elsewhere(text, pattern, value):
    assert measured(text, pattern=pattern, unit="s") == pytest.approx(value)


def test_text_in_json_may_hold_a_unit():
    assert measured('{"wall": "950.40 ms"}', json="wall", unit="s") == pytest.approx(0.9504)
    with pytest.raises(InvalidResult, match="no x in the output: '950 ms' is in ms, and no unit is declared"):
        measured('{"wall": "950 ms"}', json="wall")


def test_a_number_whose_unit_may_change_is_refused_unless_a_unit_is_declared():
    with pytest.raises(InvalidResult, match=r"'950' is in ms, and other runs may print another unit: .*unit = 'ms'"):
        measured("took 950 ms", pattern=r"took (\S+)")
    with pytest.raises(InvalidResult, match="'950' is in ms"):
        measured("took 950 ms", pattern=r"took (\S+) (?:ms|s)")
    # The pattern itself allows no other unit.
    assert measured("took 950 ms", pattern=r"took (\S+) ms") == 950.0
    assert measured("took 950 steps", pattern=r"took (\S+)") == 950.0


def test_a_unit_group_needs_a_declared_unit():
    (line,) = errors(metrics=[{"name": "x", "pattern": r"(\S+) (?P<unit>\S+)"}])
    assert "declare the unit to which values are converted" in line
    assert line.endswith("@ options.metrics.0.unit")
    (line,) = errors(metrics=[{"name": "x", "unit": "s", "pattern": r"(\S+) (\S+) (?P<unit>\S+)"}])
    assert "exactly one group, around the number, besides (?P<unit>...); it has 2" in line


@pytest.mark.parametrize(
    ("kind", "unit", "value", "exceeds"),
    [
        ("time", "s", 10.1, False),
        ("time", "s", 11.0, False),  # whole seconds
        ("time", "s", 20.5, True),
        ("time", "ms", 20500.0, True),
        ("time", "steps", 20.5, False),
        ("other", "s", 20.5, False),
    ],
)
def test_a_time_of_the_run_is_not_longer_than_the_run(kind, unit, value, exceeds):
    assert Metric("x", unit, kind=kind).exceeds_run(value, 10.0) is exceeds
    assert not Metric("x", unit, kind=kind).exceeds_run(value, 0.0)
