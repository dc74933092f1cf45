"""Charts of a metric over a parameter, and of the parts of the run time."""

import json

import pytest

from autotune.errors import CannotRunHereError
from autotune.pictures.chart import Bars, Line, Points
from autotune.pictures.files import save
from autotune.pictures.over_parameter import draw_over
from autotune.pictures.program_parts import parts
from autotune.records.outcome import Outcome
from autotune.storage.study_store import StudyStore
from launchers import Usage
from objectives.base import CYCLES, PARTS, Metric
from spaces import Choice, Integer, Space
from tests.autotune.pictures.studies import summary, trial
from tests.support.command_line import invoke
from tests.support.fakes import SECONDS, definition, took
from tests.support.stored import add_trial

SPACE = Space([Integer("np", (1, 2, 4, 8), default=8), Choice("build", ("site", "own"), default="site")])


def timed(number, seconds, iterations=7.0, routines=None, **values):
    """Return a trial with the seconds of its routines; its run takes two seconds more than the program reports."""
    details = {PARTS: routines} if routines else {}
    metrics = {"wall_s": seconds, "iterations": iterations}
    return trial(number, Outcome(metrics=metrics, details=details, usage=Usage(seconds + 2.0)), **values)


CROSSING = (
    timed(0, 8.0, np=8, build="site", routines={"all": 8.0, "bands": 6.0, "sums": 1.0}),
    timed(1, 20.0, np=1, build="own", iterations=9.0),
    timed(2, 30.0, np=1, build="site", iterations=8.0),
    timed(3, 14.0, np=2, build="own"),
    timed(4, 14.0, np=2, build="site"),
    timed(5, 10.0, np=8, build="own"),
    timed(6, 5.0, np=4, build="own", routines={"all": 5.0, "bands": 2.0, "sums": 1.5}),
    timed(7, 9.0, np=4, build="site"),
    timed(8, 21.0, np=1, build="own", iterations=99.0),
)


def curves(chart):
    """Return the corners of each line, by the label of its points."""
    (panel,) = chart.panels
    labels = {mark.number: mark.label for mark in panel.marks if isinstance(mark, Points)}
    return {labels[mark.number]: [*zip(mark.x, mark.y, strict=True)] for mark in panel.marks if isinstance(mark, Line)}


def test_there_is_a_line_for_each_value_of_the_second_through_the_best_trials():
    chart = draw_over(summary(*CROSSING, space=SPACE), "wall_s", "np", "build")
    assert curves(chart) == {
        "build=site": [(0.0, 30.0), (1.0, 14.0), (2.0, 9.0), (3.0, 8.0)],
        "build=own": [(0.0, 20.0), (1.0, 14.0), (2.0, 5.0), (3.0, 10.0)],
    }
    assert "by np: build=own at 1 and 4; build=site at 8." in chart.description
    assert chart.table.rows[0] == ("site", "1", 30.0, 2)


def test_another_metric_or_part_is_that_of_the_trial_with_the_best_time():
    about = summary(*CROSSING, space=SPACE)
    assert curves(draw_over(about, "iterations", "np")) == {
        "best trial": [(0.0, 9.0), (1.0, 7.0), (2.0, 7.0), (3.0, 7.0)]
    }
    assert curves(draw_over(about, "bands", "np")) == {"best trial": [(2.0, 2.0), (3.0, 6.0)]}
    assert curves(draw_over(about, "elapsed_s", "np")) == {
        "best trial": [(0.0, 22.0), (1.0, 16.0), (2.0, 7.0), (3.0, 10.0)]
    }
    rate = Metric("rate", "1/s", "maximize", "rate")
    trials = [trial(n, Outcome(metrics={"rate": n + 1.0}), np=8, build="own") for n in range(3)]
    fast = summary(*trials, metric=rate, space=SPACE)
    assert curves(draw_over(fast, "rate", "np")) == {"best trial": [(3.0, 3.0)]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("band", "np"),
            r"no metric or part 'band' \(did you mean 'bands'\?\); known: wall_s, iterations, elapsed_s, cpu_s, ",
        ),
        (("wall_s", "bild"), r"no parameter 'bild' \(did you mean 'build'\?\); known: np, build"),
    ],
)
def test_an_unknown_parameter_or_metric_is_an_error(words, message):
    with pytest.raises(CannotRunHereError, match=message):
        draw_over(summary(*CROSSING, space=SPACE), *words)


def test_where_the_time_goes_is_in_seconds_and_as_shares_of_the_run():
    chart = parts(summary(*CROSSING, space=SPACE))
    seconds, shares = chart.panels
    assert [name for _, name in seconds.y.ticks] == ["all", "bands", "sums"]
    default, winner = (mark for mark in seconds.marks if isinstance(mark, Bars))
    assert (default.label, default.values, winner.values) == ("default", (8.0, 6.0, 1.0), (5.0, 2.0, 1.5))
    assert [mark.values[1] for mark in shares.marks] == [pytest.approx(60.0), pytest.approx(100 * 2 / 7)]
    assert "The winner spends 2 instead of 6 s in bands." in chart.description
    assert "It spends more in sums: 1.5 instead of 1 s." in chart.description
    assert chart.table.columns == ("part", "default [s]", "default [%]", "winner [s]", "winner [%]")


def test_shares_are_those_of_one_cycle():
    details = {PARTS: {"all": 4.0, "bands": 3.0}, CYCLES: 3}
    relaxed = Outcome(metrics={"wall_s": 4.0}, details=details, usage=Usage(15.0))
    chart = parts(summary(trial(0, relaxed, np=8, build="site"), space=SPACE))
    assert [mark.values for mark in chart.panels[1].marks] == [(80.0, 60.0)]
    assert "of one cycle of a run" in chart.description
    assert "cycle" not in parts(summary(*CROSSING, space=SPACE)).description


def test_a_program_that_times_no_parts_has_no_such_picture():
    nothing = timed(0, 8.0, np=8, build="site", routines={"all": 0.0})
    assert parts(summary(nothing, space=SPACE)) is None
    assert parts(summary(trial(0, took(2.0)), trial(1, took(1.0)))) is None
    alone = summary(CROSSING[0], space=SPACE)
    assert [mark.label for mark in parts(alone).panels[0].marks] == ["default"]


def test_both_are_drawn(tmp_path):
    about = summary(*CROSSING, space=SPACE)
    for chart in (draw_over(about, "wall_s", "np", "build"), parts(about)):
        save(chart, tmp_path / f"{chart.name}.png")
        assert (tmp_path / f"{chart.name}.png").stat().st_size > 1000
        assert json.dumps(chart.to_dict())
    marks = draw_over(about, "wall_s", "np", "build").to_dict()["panels"][0]["marks"]
    assert [(one["role"], one.get("number", 0)) for one in marks if one["kind"] == "line"] == [
        ("series", 0),
        ("series", 1),
    ]


def test_the_command_prints_the_figures_and_writes_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    store = StudyStore.create("sqlite:///autotune.db", "paper", definition(SPACE, metrics=(SECONDS,)))
    for one in CROSSING[:4]:
        add_trial(store, SPACE, one.configuration, *one.outcomes)
    ended = invoke("picture", "paper", "--over", "np,build", "--json")
    assert json.loads(ended.stdout)["columns"] == ["build", "np", "wall_s [s]", "of trial"]
    assert not list(tmp_path.glob("*.png"))
    ended = invoke("picture", "paper", "--over", "np", "--of", "iterations")
    assert (ended.exit_code, [path.name for path in tmp_path.glob("*.png")]) == (0, ["paper-iterations-np.png"])
    assert "iterations over np, of the trial with the best wall_s at each" in ended.stdout
    assert invoke("picture", "paper", "--over", "np,np").exit_code == 2
