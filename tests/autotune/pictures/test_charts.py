import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.comparison.findings import Ablation, OptionEffect
from autotune.performance.warm_start import WarmStart
from autotune.pictures import charts_of
from autotune.pictures.ablation import ablation
from autotune.pictures.chart import Band, Bars, Chart, Line, Points, Role, Table, stairs
from autotune.pictures.charts import NAMES, drawers_of, names_on_page
from autotune.pictures.curves import curves
from autotune.pictures.predictions import warm_start_prediction
from autotune.pictures.progress import MOST, progress
from autotune.pictures.slices import parallel, slices
from autotune.pictures.tradeoff import tradeoff
from autotune.pictures.uncertainty import disturbance, noise, pairs
from autotune.records.outcome import Outcome
from autotune.records.study import STOPPED
from autotune.results.disturbed_runs import TakenShare
from autotune.scheduling.hyperband import Bracket
from autotune.statistics.verdict import Verdict
from objectives.base import FailureKind, Metric
from tests.autotune.pictures.studies import CONFIRMED, SCORE, legged, summary, trial, varied
from tests.support.fakes import SECONDS, capped, failed, took

RATE = Metric("rate", "B/s", "maximize", "rate")


def points(chart: Chart, role: Role) -> list[tuple[float, float]]:
    marks = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Points) and mark.role is role]
    return [place for mark in marks for place in zip(mark.x, mark.y, strict=True)]


def line(chart: Chart, role: Role) -> Line:
    found = [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, Line) and mark.role is role]
    assert len(found) == 1
    return found[0]


def bars(chart: Chart) -> dict[str, float]:
    (panel,) = chart.panels
    names = dict(panel.y.ticks)
    marks = [mark for mark in panel.marks if isinstance(mark, Bars)]
    return {names[y]: value for mark in marks for y, value in zip(mark.y, mark.values, strict=True)}


def test_progress_shows_every_trial_by_its_state_and_the_best_so_far():
    chart = progress(varied(CONFIRMED))
    assert line(chart, Role.BEST).y == pytest.approx((4.0, 3.0, 2.05, 2.05), abs=0.01)
    assert line(chart, Role.BASELINE).y == pytest.approx((4.0, 4.0))
    assert points(chart, Role.WINNER) == [(12.0, pytest.approx(2.05, abs=0.01))]
    assert points(chart, Role.CAPPED) == [(13.0, 2.5), (14.0, pytest.approx(3.5))]
    worst = max(y for role in (Role.TRIAL, Role.CAPPED) for _, y in points(chart, role))
    assert [x for x, y in points(chart, Role.FAILED) if y > worst] == [16.0, 17.0]
    assert [x for x, y in points(chart, Role.INVALID) if y > worst] == [15.0]
    assert "trial 12" in chart.description
    assert "2 capped" in chart.description
    assert chart.table.rows[-1][0] == 12


def test_progress_is_drawn_over_time_too_where_the_starts_of_runs_are_known():
    def at(second, one):
        started = f"2026-03-01T10:00:{second:02}+00:00"
        return replace(one, runs=tuple(replace(run, started=started) for run in one.runs))

    # With workers, a later trial may end first.
    found = summary(at(0, trial(0, took(4.0))), at(20, trial(1, took(2.0))), at(5, trial(2, took(3.0))))
    by_number, by_time = progress(found).panels
    assert by_time.x.text == "since 2026-03-01 10:00 UTC [s]"
    lines = [next(mark for mark in panel.marks if mark.role is Role.BEST) for panel in (by_number, by_time)]
    assert [line.x for line in lines] == [(0.0, 1.0, 2.0), (4.0, 8.0, 22.0, 22.0)]
    assert [line.y for line in lines] == [pytest.approx((4.0, 2.0, 2.0)), pytest.approx((4.0, 3.0, 2.0, 2.0))]
    assert len(progress(replace(found, definition=replace(found.definition, objective="replay"))).panels) == 1


@pytest.mark.parametrize("best", [2.0, 8.0])
def test_progress_of_a_rate_goes_up_and_failures_lie_below(best):
    found = summary(
        *(trial(0, rated(4.0)), trial(1, rated(best)), trial(2, failed(FailureKind.TIMED_OUT))), metric=RATE
    )
    chart = progress(found)
    assert max(line(chart, Role.BEST).y) == pytest.approx(max(4.0, best))
    assert points(chart, Role.FAILED)[0][1] < min(4.0, best)
    assert chart.panels[0].y.text == "rate [B/s]"


def rated(value):
    return Outcome(metrics={"rate": value})


def test_a_study_without_a_run_has_no_picture_and_one_without_a_value_is_drawn():
    assert charts_of(summary(trial(0, settled=False))) == []
    found = charts_of(
        summary(trial(0, failed(FailureKind.OUT_OF_MEMORY, "killed")), trial(1, failed(FailureKind.TIMED_OUT)))
    )
    assert [chart.name for chart in found] == ["progress"]
    assert "did not give a valid measurement" in found[0].description


def test_a_band_of_uncertainty_needs_repeats():
    once = summary(trial(0, took(2.0)), trial(1, took(1.0)))
    again = summary(trial(0, took(2.0), took(2.1)), trial(1, took(1.0), took(1.1)))
    assert Role.BAND not in progress(once).roles
    assert Role.BAND in progress(again).roles


def test_slices_have_a_panel_for_each_parameter_that_varies_and_a_place_for_unset():
    chart = slices(varied())
    assert [panel.x.title for panel in chart.panels] == ["np", "blas", "rate", "bind"]
    blas = chart.panels[1]
    assert blas.x.ticks[0] == (-1.0, "unset")
    assert {x for mark in blas.marks if isinstance(mark, Points) for x in mark.x} == {-1.0, 0.0, 1.0}
    assert chart.panels[2].x.log
    unset = next(row for row in chart.table.rows if row[:2] == ("blas", "unset"))
    assert unset[2] == 3


@pytest.mark.parametrize(
    ("metric", "of"), [(SECONDS, lambda ratio: (4.0 * ratio, 4.0)), (RATE, lambda ratio: (4.0, 4.0 * ratio))]
)
def test_the_pairs_of_a_verdict_are_points_above_one_where_the_winner_was_better(metric, of):
    make = took if metric is SECONDS else rated
    found = tuple(of(ratio) for ratio in (2.0, 2.1, 1.9, 2.0, 0.9, 2.05, 2.0, 1.95))
    verdict = Verdict(1, (1,), 1, 0.95, 0.05, found)
    values = (4.0, 2.0) if metric is SECONDS else (2.0, 4.0)
    chart = pairs(summary(*(trial(k, make(value)) for k, value in enumerate(values)), metric=metric, verdict=verdict))
    assert [y for _, y in points(chart, Role.WINNER)] == pytest.approx([2.0, 2.1, 1.9, 2.0, 0.9, 2.05, 2.0, 1.95])
    low, high = verdict.interval(metric)[1:]
    (band,) = (mark for mark in chart.panels[0].marks if isinstance(mark, Band))
    assert (band.low[0], band.high[0]) == (low, high)
    assert "7 of 8 are above 1" in chart.description
    assert pairs(summary(trial(0, make(1.0)), metric=metric)) is None


def test_noise_is_drawn_over_time_with_what_the_machine_did():
    slow = {0: 1.0, 1: 1.3, 2: 1.0, 3: 1.3}
    runs = [
        replace(trial(k, *(took((4.0 + k) * slow[block] * (1 + 0.001 * k)) for block in slow)), settled=True)
        for k in range(6)
    ]
    blocked = [
        replace(one, runs=tuple(replace(run, block=block) for block, run in zip(slow, one.runs, strict=True)))
        for one in runs
    ]
    found = summary(*blocked)
    chart = noise(found)
    assert "the machine drifted by 30%" in chart.description
    drift = dict(zip(line(chart, Role.BEST).x, line(chart, Role.BEST).y, strict=True))
    assert drift[1.0] - drift[0.0] > 20.0
    assert [row[:2] for row in chart.table.rows] == [(0, 6), (1, 6), (2, 6), (3, 6)]
    assert noise(summary(trial(0, took(4.0)))) is None


def test_parallel_coordinates_have_the_better_end_above():
    for metric, make in ((SECONDS, took), (RATE, rated)):
        found = summary(trial(0, make(4.0)), trial(1, make(2.0)), trial(3, make(8.0)), metric=metric)
        chart = parallel(found)
        best = found.standings.ranking[0].number
        lines = [mark for mark in chart.panels[0].marks if isinstance(mark, Line) and mark.role is not Role.GUIDE]
        ends = {mark.hover[0].split(":")[0]: mark.y[-2] for mark in lines}
        assert ends[f"trial {best}"] == 1.0
        assert min(ends.values()) == 0.0


def test_parallel_coordinates_have_the_capped_trials_at_their_bounds():
    found = summary(trial(0, took(4.0)), trial(1, took(2.0)), trial(2, capped(6.0)))
    chart = parallel(found)
    lost = line(chart, Role.CAPPED)
    assert lost.hover[0] == "trial 2: capped at 6 s"
    assert lost.y[-2] == 0.0, "the worst end"
    assert "1 capped trial ends at its bound" in chart.description


def test_curves_are_drawn_by_the_rungs_of_their_bracket():
    trials = [legged(0, [0.1] * 9)]
    trials += [legged(1, [0.2, 0.3, 0.35], **{STOPPED: 3}), legged(2, [0.2] * 9), legged(3, [0.5] * 9)]
    trials += [legged(4, [0.25])]
    chart = curves(
        summary(*trials, metric=SCORE), [Bracket((2, 1), (3, 9)), Bracket((1,), (9,)), Bracket((1, 1), (3, 9))]
    )
    first, second = chart.panels
    assert "rungs at 3 and 9: 3 trials" in first.title
    assert "1 trial" in second.title
    assert Role.WINNER in {mark.role for mark in second.marks}
    assert all(Role.BASELINE in {mark.role for mark in panel.marks} for panel in chart.panels)
    assert points(chart, Role.PAUSED) == [(3.0, 0.35), (1.0, 0.25)]
    assert {x for x in line(replace(chart, panels=(first,)), Role.RUNG).x if x} == {3.0, 9.0}


def test_an_ablation_names_what_helps():
    effects = (
        OptionEffect(("np",), {"np": 8}, {"np": 4}, (1.5, 1.4, 1.6), (1.5, 1.4, 1.6)),
        OptionEffect(("bind",), {"bind": False}, {"bind": True}, (1.0, 0.9, 1.1), (1.0, 0.9, 1.1)),
    )
    chart = ablation(Ablation(1, 0.95, 6, effects, baseline=3.0, combined=(1.5, 1.4, 1.6)), SECONDS)
    assert bars(chart) == pytest.approx({"default": 3.0, "np=4": 2.0, "bind=yes": 3.0, "all 2: trial 1": 2.0})
    assert "Significantly better alone: np." in chart.description
    assert ablation(Ablation(1, 0.95, 6, effects), SECONDS) is None


def test_a_warm_start_is_shown_with_what_came_of_it():
    found = summary(trial(0, took(4.0), np=8), trial(1, took(2.0), np=2), trial(2, took(3.0), np=4))
    warm = WarmStart(({"np": 2}, {"np": 3}), (1.8, 1.5, 2.2))
    chart = warm_start_prediction(replace(found, warm=warm))
    assert points(chart, Role.PREDICTED) == [(1.8, 0.0)]
    assert points(chart, Role.MEASURED) == [(2.0, 0.0)]
    assert warm_start_prediction(replace(found, warm=WarmStart(why="nothing is known"))) is None
    # An earlier study measured its speed-up, and predicted nothing.
    assert warm_start_prediction(replace(found, warm=replace(warm, earlier="study paper"))) is None


def test_a_trade_off_shows_its_front():
    loss = Metric("loss", "")
    places = [(3.0, 1.0), (1.0, 3.0), (2.0, 2.0), (3.0, 3.0)]
    trials = [trial(k, Outcome(metrics={"wall_s": a, "loss": b})) for k, (a, b) in enumerate(places)]
    chart = tradeoff(summary(*trials, further=(loss,), study={"tradeoff": {"metric": "loss"}}))
    assert points(chart, Role.BEST) == [(1.0, 3.0), (2.0, 2.0)]
    assert points(chart, Role.BASELINE) == [(3.0, 1.0)]
    assert line(chart, Role.BEST).x == (1.0, 2.0, 3.0)
    assert tradeoff(varied()) is None


def test_a_trade_off_of_three_metrics_is_drawn_in_each_pair():
    loss, memory = Metric("loss", ""), Metric("memory", "B")
    places = [(3.0, 1.0, 2.0), (1.0, 3.0, 2.0), (2.0, 2.0, 1.0), (3.0, 3.0, 3.0)]
    trials = [trial(k, Outcome(metrics={"wall_s": a, "loss": b, "memory": c})) for k, (a, b, c) in enumerate(places)]
    chart = tradeoff(summary(*trials, further=(loss, memory), study={"tradeoff": {"metric": ["loss", "memory"]}}))
    pairs = [(panel.x.text, panel.y.text) for panel in chart.panels]
    assert pairs == [("wall_s [s]", "loss"), ("wall_s [s]", "memory [B]"), ("loss", "memory [B]")]
    assert [row[:-1] for row in chart.table.rows] == [(1, 1.0, 3.0, 2.0), (2, 2.0, 2.0, 1.0), (0, 3.0, 1.0, 2.0)]
    assert "no other trial beats the 3 on the front in all 3" in chart.description


@pytest.mark.slow
def test_thousands_of_trials_make_a_small_picture_that_says_so():
    found = summary(*(trial(k, took(5.0 - k / 1500.0 + k % 7)) for k in range(5000)))
    charts = charts_of(found)
    for chart in charts:
        assert len(json.dumps(chart.to_dict())) < 400_000, chart.name
    chart = next(one for one in charts if one.name == "progress")
    assert len(points(chart, Role.TRIAL)) + 1 <= MOST
    assert f"{MOST} of 5,000 trials are drawn" in chart.description
    # Its best are all there.
    assert line(chart, Role.BEST).y[-1] == min(found.standings.value(one) for one in found.trials)


few = settings(max_examples=25)
outcomes = st.one_of(
    st.floats(1e-3, 1e6).map(took),
    st.floats(1e-3, 1e6).map(capped),
    st.sampled_from(FailureKind).map(lambda kind: failed(kind, "said <no> $")),
)


@few
@given(st.lists(st.lists(outcomes, max_size=3), max_size=8))
def test_whatever_trials_there_are_the_charts_are_sound(found):
    charts = charts_of(summary(*(trial(k, *runs, settled=bool(runs)) for k, runs in enumerate(found))))
    assert [chart.name for chart in charts] == [name for name in NAMES if name in {one.name for one in charts}]
    for chart in charts:
        assert chart.description.endswith(".")
        for panel in chart.panels:
            assert all(sound(mark) for mark in panel.marks)
        json.dumps(chart.to_dict(), allow_nan=False)


def sound(mark):
    """Whether the sequences of a mark have equal lengths and its intervals contain the values."""
    sizes = {
        len(getattr(mark, name))
        for name in ("x", "y", "values", "hover", "words", "low", "high")
        if getattr(mark, name, ())
    }
    if isinstance(mark, Points | Bars) and mark.low:
        along = mark.values if isinstance(mark, Bars) else mark.x if mark.sideways else mark.y
        assert all(low <= one <= high for low, one, high in zip(mark.low, along, mark.high, strict=True))
    return len(sizes) <= 1


def test_stairs_stay_until_the_next_place():
    assert stairs((0.0, 2.0, 3.0), (5.0, 4.0, 4.5)) == ([0.0, 2.0, 2.0, 3.0, 3.0], [5.0, 5.0, 4.0, 4.0, 4.5])


def test_a_table_refuses_rows_of_another_length():
    with pytest.raises(ValueError, match="2 columns"):
        Table(("a", "b"), ((1,),))


def test_disturbances_are_drawn_over_time_with_the_runs_set_aside():
    taken = (
        TakenShare(0.0, 0.01, 0, "tuning", False),
        TakenShare(60.0, 0.4, 1, "tuning", True),
        TakenShare(90.0, 0.02, 1, "verdict", False),
    )
    found = replace(summary(trial(0, took(2.0))), taken=taken)
    chart = disturbance(found)
    assert points(chart, Role.TRIAL) == [(0.0, 1.0), (1.5, 2.0)]
    assert points(chart, Role.PAUSED) == [(1.0, 40.0)]
    said = "2.0% of their time (median), 40% at most; of 3 runs, 1 set aside for that"
    assert said in chart.description
    assert chart in charts_of(found)
    assert disturbance(summary(trial(0, took(2.0)))) is None, "where nobody knows"


def test_the_page_knows_its_pictures_without_drawing_and_the_main_one_is_first():
    found = varied()
    assert names_on_page(found) == ["progress", "importance", "slices", "timeline"]
    assert names_on_page(summary(trial(0, settled=False))) == []
    assert names_on_page(varied(CONFIRMED))[:2] == ["progress", "pairs"]
    assert {*names_on_page(found)} - {"timeline"} <= drawers_of(found).keys()
