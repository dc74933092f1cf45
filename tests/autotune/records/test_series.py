import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.records.series import TUNING, WARM_UP, RunId, Series

STORED = {
    TUNING: "",
    WARM_UP: "warm-up",
    Series.select((3, 5)): "select:3,5",
    Series.verdict(12): "verdict:12",
    Series.duet(12): "duet:12",
    Series.ablate(12): "ablate:12",
    Series.simplify(12, "a1b2"): "simplify:12:a1b2",
    Series.workload("large", "c3d4", 12): "workload:large:c3d4:12",
    Series.sweep("e5f6"): "sweep:e5f6",
    Series.watch(12, 3): "watch:12:3",
}
NAMES = {
    RunId(trial=12): "00012",
    RunId(trial=12, number=1): "00012-1",
    RunId(trial=123456, number=81): "123456-81",
    RunId(WARM_UP): "warm-up",
    RunId(Series.verdict(12), round=3, side=1): "verdict-12-03-1",
    RunId(Series.duet(12), round=3, side=1): "duet-12-03-1",
    RunId(Series.select((3, 5)), round=100, side=2): "select-3-5-100-2",
    RunId(Series.simplify(12, "a1b2"), round=0, side=0): "simplify-12-a1b2-00-0",
    RunId(Series.workload("very-large", "c3d4", 12), round=9): "workload-very-large-c3d4-12-09-0",
    RunId(Series.sweep("e5f6"), round=1, side=10): "sweep-e5f6-01-10",
    RunId(Series.watch(12, 3), round=1, side=1): "watch-12-3-01-1",
}


@pytest.mark.parametrize(("series", "text"), STORED.items(), ids=str)
def test_a_series_is_stored_as_it_always_was_and_read_back(series, text):
    assert str(series) == text
    assert Series.parse(text) == series


@pytest.mark.parametrize(("run", "name"), NAMES.items(), ids=str)
def test_a_run_is_named_as_it_always_was_and_known_by_its_name(run, name):
    assert str(run) == name
    assert RunId.parse(name) == run


@given(st.text(), st.integers(0, 999), st.integers(0, 9))
def test_a_name_stays_the_same_whatever_an_input_is_called(called, number, side):
    name = str(RunId(Series.workload(called, "a1b2", 7), round=number, side=side))
    assert str(RunId.parse(name)) == name


@pytest.mark.parametrize("name", ["", "12x", "plan", "verdict-12", "of-nothing-03-1"])
def test_other_folders_are_not_runs(name):
    with pytest.raises(ValueError, match="is not the name of a run"):
        RunId.parse(name)


def test_only_runs_of_tuning_count_for_trials():
    assert [series for series in STORED if series.is_tuning] == [TUNING]
    assert not WARM_UP.is_comparison
    assert all(series.is_comparison for series in STORED if series not in {TUNING, WARM_UP})
