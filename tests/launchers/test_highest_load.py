"""The search for the highest load that keeps its limits, where chance decides between keeping and breaking them."""

import math

import numpy as np
import pytest

from launchers.highest_load import LOADS, highest_load, next_load, reported_load


def search(low, high, keeps, start=None, shift=0.0):
    """Return what a search finds, and its loads; `keeps` says of a load whether it keeps the limits."""
    kept = []
    while (load := next_load(low, high, kept, start, shift)) is not None:
        assert low <= load <= high
        assert isinstance(load, float) or isinstance(low, int)
        kept.append((load, keeps(load)))
    assert len(kept) <= LOADS
    return highest_load(low, high, kept, start), kept


def errors(draw, count=80, **options):
    """Return the relative errors of searches, as logarithms; `draw` makes whether a load keeps the limits of 20."""
    rng = np.random.default_rng(0)
    return [math.log(search(1.0, 64.0, lambda load: draw(rng, load), **options)[0] / 20.0) for _ in range(count)]


def by_chance(rng, load):
    return math.log(20.0 / load) > rng.normal(0.0, 0.12)


@pytest.mark.parametrize("shift", [-0.5, 0.0, 0.3])
@pytest.mark.parametrize(("low", "high"), [(1, 64), (1.0, 64.0), (100, 10_000)])
def test_a_limit_without_chance_is_found_to_a_tenth(low, high, shift):
    for part in range(1, 50):
        limit = low * (high / low) ** (part / 50)
        found, _ = search(low, high, lambda load, limit=limit: load <= limit, shift=shift)
        assert found == pytest.approx(limit, rel=0.12, abs=1.0 if isinstance(low, int) else 0.0)


@pytest.mark.parametrize(("low", "high"), [(1, 64), (1.0, 64.0), (100, 100_000), (1, 2)])
def test_limits_at_or_beyond_the_ends_are_found_at_the_ends(low, high):
    assert search(low, high, lambda load: True)[0] == high
    found, kept = search(low, high, lambda load: False)
    assert found == low
    assert kept[-1] == kept[-2] == (low, False), "the lowest load breaks its limits twice before none can keep them"
    assert reported_load(kept, found) == len(kept) - 1


def test_neighbouring_whole_numbers_are_distinguished():
    assert [search(5, 6, lambda load, limit=limit: load <= limit)[0] for limit in (5, 6)] == [5, 6]


def test_loads_that_keep_limits_by_chance_are_averaged():
    # A bisection of six loads that believes each of them errs by .12.
    assert np.std(errors(by_chance)) < 0.1


def test_disturbed_loads_do_not_send_a_search_below_them():
    disturbed = errors(lambda rng, load: rng.random() > 0.1 and by_chance(rng, load), start=20.0)
    assert np.mean(np.abs(disturbed)) < 0.12
    assert abs(np.median(disturbed)) < 0.05
    found, kept = search(1.0, 64.0, lambda load: load <= 20.0 and not 7.9 < load < 8.1)
    assert kept[0] == (pytest.approx(8.0), False)
    assert 14 < found < 24


def test_a_search_begins_near_a_known_load_and_leaves_it_if_that_was_wrong():
    for start in (0.1, 2.0, 20.0, 60.0, 500.0):
        found, kept = search(1.0, 64.0, lambda load: load <= 20.0, start=start)
        assert found == pytest.approx(20.0, rel=0.1 if start <= 20.0 else 0.3)
        assert start != 20.0 or all(10.0 < load < 40.0 for load, _ in kept)


def test_a_search_that_surely_ends_below_its_start_ends_sooner():
    found, kept = search(1.0, 64.0, lambda load: load <= 6.0, start=20.0)
    assert len(kept) < LOADS
    assert found == pytest.approx(6.0, rel=0.3)
    assert len(search(1.0, 64.0, lambda load: load <= 19.0, start=20.0)[1]) == LOADS


def test_the_figures_are_those_of_the_load_nearest_to_what_was_found():
    kept = [(8.0, True), (26.0, False), (15.0, True), (21.0, False), (18.0, True)]
    assert reported_load(kept, 19.0) == 4
    assert reported_load(kept, 14.0) == 2
