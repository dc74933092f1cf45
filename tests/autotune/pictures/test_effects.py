"""Pictures of a model of the trials, and the commands that print what they show."""

import json
from dataclasses import replace
from math import exp

import pytest

from autotune.errors import CannotRunHereError
from autotune.pictures import charts_of
from autotune.pictures.chart import Bars, Cells, Points, Role
from autotune.pictures.charts import NAMES
from autotune.pictures.effects.charts import every_chart_of, modelled_charts
from autotune.pictures.effects.contour import contour
from autotune.pictures.files import save, to_svg
from autotune.results.effects.process import study_process
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from spaces import Choice, Constraint, Integer, Space
from tests.autotune.pictures.studies import summary, trial
from tests.autotune.results.test_importance import SPACE, added, study
from tests.support.command_line import invoke
from tests.support.fakes import definition, took
from tests.support.stored import add_trial

TIED = Space(
    [
        Integer.range("ranks", 1, 40, default=1),
        Integer("threads", (1, 2, 4, 8), default=1),
        Choice("blas", ("slow", "fast"), optional=True),
    ],
    [Constraint("cores", "ranks * threads <= 48", "a core each")],
)


def tied(of):
    return -0.5 * (of["ranks"] * of["threads"]) ** 0.3 - 0.2 * (of.get("blas") == "fast")


def marks(chart, kind):
    return [mark for panel in chart.panels for mark in panel.marks if isinstance(mark, kind)]


@pytest.mark.slow
def test_a_study_has_what_matters_and_the_two_that_matter_most_over_each_other():
    found = {chart.name: chart for chart in every_chart_of(study(added, 40))}
    assert list(found) == [name for name in NAMES if name in found]
    chart = found["importance"]
    alone, pairs = marks(chart, Bars)
    assert chart.panels[0].y.ticks[0][1] == "blas"
    assert alone.low[0] > 30.0
    assert min(alone.low) == 0.0
    assert len(pairs.values) == 6
    assert "Blas alone explains" in chart.description
    assert [row[0] for row in chart.table.rows][-1] == "all else"
    assert sum(row[1] for row in chart.table.rows) == pytest.approx(100.0, abs=1.0)
    assert found["contour"].title == "Predicted over np and blas"
    quick = {one.name for one in charts_of(study(added, 40))}
    assert quick == set(found) - {"importance", "contour"}
    assert modelled_charts(study(added, 4)) == []


@pytest.mark.slow
def test_the_contour_has_the_valid_pairs_with_the_others_as_in_the_winner():
    about = study(tied, 30, space=TIED)
    chart = contour(about, study_process(about), ("ranks", "threads"))
    (cells,) = marks(chart, Cells)
    best = about.best.configuration
    assert f"all others as in trial {about.best.number}" in chart.description
    ranks, threads = TIED.parameters[0].values, TIED.parameters[1].values
    shown = {tuple(word.partition("\n")[0].split(", ")) for word in cells.hover}
    assert (f"ranks={best['ranks']}", f"threads={best['threads']}") in shown
    for left, right in shown:
        assert int(left.partition("=")[2]) * int(right.partition("=")[2]) <= 48
    assert "are blank: they are not valid so" in chart.description
    assert max(cells.values) == 1.0
    assert min(cells.values) == 0.0
    # Cells touch, and together are as wide as the axis.
    assert sum({(x, width): width for x, width in zip(cells.x, cells.widths, strict=True)}.values()) == len(ranks)
    assert set(cells.heights) == {1.0}
    assert len(threads) == len(set(cells.y))
    points = {mark.role: mark for mark in marks(chart, Points)}
    assert sum(len(mark.x) for mark in points.values()) == 30
    assert points[Role.WINNER].hover[0].startswith(f"trial {about.best.number}: ")
    place = (float(ranks.index(best["ranks"])), float(threads.index(best["threads"])))
    assert (points[Role.WINNER].x[0], points[Role.WINNER].y[0]) == place


def test_an_option_that_is_unset_has_a_place_of_its_own():
    about = study(tied, 30, space=TIED)
    chart = contour(about, study_process(about), ("blas", "threads"))
    assert chart.panels[0].x.ticks[0] == (-1.0, "unset")
    assert any(word.startswith("blas=unset, ") for word in marks(chart, Cells)[0].hover)


def test_a_parameter_that_is_not_there_is_named_with_those_that_are():
    about = study(tied, 30, space=TIED)
    with pytest.raises(CannotRunHereError, match=r"no parameter 'rank' \(did you mean 'ranks'\?\); known: ranks, "):
        contour(about, study_process(about), ("rank", "threads"))


def test_both_are_drawn_by_both_renderers(tmp_path):
    about = study(tied, 30, space=TIED)
    for chart in modelled_charts(about):
        save(chart, tmp_path / f"{chart.name}.png")
        assert (tmp_path / f"{chart.name}.png").stat().st_size > 1000
        assert "<path" in to_svg(chart)
        kinds = {mark["kind"] for panel in chart.to_dict()["panels"] for mark in panel["marks"]}
        assert ("cells" in kinds) == (chart.name == "contour")


@pytest.fixture
def stored(sqlite, tmp_path):
    store = StudyStore.create(sqlite, "mine", definition(SPACE))
    for made in study(added, 20).trials:
        seconds = exp(added(made.configuration))
        add_trial(store, SPACE, made.configuration, took(seconds), worth=Observation(value=seconds))
    StudyStore.create(sqlite, "empty", definition(SPACE))
    return ("--storage", str(tmp_path / "autotune.db"))


def ran(*words, code=0):
    ended = invoke(*words)
    assert ended.exit_code == code, (ended.output, ended.exception)
    return ended.stdout


def test_the_command_prints_what_the_picture_shows(stored):
    told = json.loads(ran("importance", "mine", *stored, "--json"))
    assert (told["study"], told["metric"], told["trials"], told["confidence"]) == ("mine", "wall_s", 20, 0.95)
    assert told["parameters"][0]["names"] == ["blas"]
    assert {"share", "low", "high"} < told["parameters"][0].keys()
    assert len(told["pairs"]) == 6
    table = ran("importance", "mine", *stored)
    assert "np and blas" in table
    assert "all else" in table
    assert f"{told['sentences'][0][0].upper()}{told['sentences'][0][1:]}." in table
    ended = invoke("importance", "empty", *stored)
    assert "has no model of what matters: it takes 5 trials with a value" in str(ended.exception)


def test_what_is_predicted_over_two_parameters_is_printed_and_drawn(stored, tmp_path):
    words = ("picture", "mine", "--over", "np,blas", "--predicted", *stored)
    told = json.loads(ran(*words, "--json"))
    assert told["columns"] == ["np", "blas", "wall_s [s]", "from", "to"]
    assert len(told["rows"]) == 24
    assert told["rows"][0][1] == "fastest"
    assert told["rows"][0][3] < told["rows"][0][2] < told["rows"][0][4]
    ran(*words, "--output", str(tmp_path / "mine.svg"))
    assert (tmp_path / "mine.svg").stat().st_size > 1000
    ran("picture", "mine", "--over", "np", "--predicted", *stored, code=2)
    ran("picture", "mine", "--predicted", *stored, code=2)
    ran(*words, "--of", "wall_s", code=2)
    ended = invoke("picture", "empty", "--over", "np,blas", "--predicted", *stored)
    assert "has no model to predict by" in str(ended.exception)


def test_hundreds_of_trials_are_thinned_and_the_winner_stays():
    about = study(added, 384)
    doubled = [replace(one, number=one.number + 1000) for one in about.trials if one is not about.best]
    many = summary(*about.trials, *doubled, trial(5000, took(0.1), np=1, blas="fastest", block=1, idle=1), space=SPACE)
    chart = contour(many, study_process(many), ("np", "block"))
    drawn = sum(len(mark.x) for mark in marks(chart, Points))
    assert drawn == 400
    assert "400 of 768 trials are drawn" in chart.description
    assert any(mark.role is Role.WINNER for mark in marks(chart, Points))
