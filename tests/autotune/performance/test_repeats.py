from statistics import median

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from autotune.performance.measurements.repeats import RepeatedMeasurement, aggregate, weighted_median
from objectives.base import Metric

TIME = Metric("wall_s", "s", kind="time")
RATE = Metric("rate", "1/s", "maximize", "rate")
VALUES = st.floats(0.001, 1e6)
WEIGHTED = st.lists(st.tuples(VALUES, st.integers(1, 7)), min_size=1, max_size=12)


@given(WEIGHTED)
def test_a_weighted_median_is_the_median_of_the_repeats_written_out(weighted):
    written_out = [value for value, weight in weighted for _ in range(weight)]
    assert weighted_median(weighted) == pytest.approx(median(written_out))


@given(WEIGHTED, st.sampled_from([TIME, RATE]))
def test_values_become_their_median_and_the_runs_are_added(weighted, metric):
    found = aggregate([RepeatedMeasurement(value, runs=runs) for value, runs in weighted], metric)
    assert found.value == pytest.approx(median([value for value, runs in weighted for _ in range(runs)]))
    assert found.bound is None
    assert found.runs == sum(runs for _, runs in weighted)


@given(st.lists(VALUES, max_size=6), st.lists(VALUES, max_size=6), st.lists(st.floats(0, 1e6), min_size=6, max_size=6))
def test_what_is_said_of_bounds_holds_whatever_the_values_behind_them_are(values, bounds, beyond):
    assume(values or bounds)
    found = aggregate(
        [*(RepeatedMeasurement(value) for value in values), *(RepeatedMeasurement(bound=bound) for bound in bounds)],
        TIME,
    )
    real = median([*values, *(bound + more for bound, more in zip(bounds, beyond, strict=False))])
    if found.value is not None:
        assert real == pytest.approx(found.value)
    else:
        assert real >= found.bound - 1e-9 * real


def test_a_median_that_bounds_cannot_move_is_a_value():
    samples = [RepeatedMeasurement(1.0), RepeatedMeasurement(2.0), RepeatedMeasurement(bound=9.0)]
    assert aggregate(samples, TIME).value == 2.0
    assert (
        aggregate(
            [RepeatedMeasurement(2.0), RepeatedMeasurement(bound=9.0), RepeatedMeasurement(bound=1.5)], TIME
        ).bound
        == 2.0
    )
    assert (
        aggregate([RepeatedMeasurement(8.0), RepeatedMeasurement(9.0), RepeatedMeasurement(bound=3.0)], RATE).value
        == 8.0
    )


def test_half_of_the_runs_failed():
    assert (
        aggregate([RepeatedMeasurement(1.0), RepeatedMeasurement(failure="out of memory")], TIME).failure
        == "out of memory"
    )
    found = aggregate([RepeatedMeasurement(1.0, runs=2), RepeatedMeasurement(failure="node died")], TIME)
    assert (found.value, found.runs) == (1.0, 2)


def test_the_parts_are_those_of_the_run_nearest_to_the_median_that_told_them():
    runs = [
        RepeatedMeasurement(1.0, parts={"fft": 0.5}),
        RepeatedMeasurement(2.0),
        RepeatedMeasurement(2.5, parts={"fft": 1.5}),
        RepeatedMeasurement(9.0, parts={"fft": 8.0}),
    ]
    assert aggregate(runs, TIME).parts == {"fft": 1.5}
    assert aggregate([RepeatedMeasurement(2.0)], TIME).parts == {}
    capped = [RepeatedMeasurement(bound=2.0), RepeatedMeasurement(9.0, parts={"fft": 8.0})]
    assert aggregate(capped, TIME).parts == {}


def test_nothing_cannot_be_aggregated():
    with pytest.raises(ValueError, match="no sample"):
        aggregate([], TIME)
