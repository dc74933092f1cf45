"""The two renderers, over the same charts."""

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from autotune.comparison.findings import Ablation, OptionEffect
from autotune.errors import CannotRunHereError
from autotune.performance.warm_start import WarmStart
from autotune.pictures import FORMATS, charts_of, draw_calibration
from autotune.pictures.chart import Axis, Chart, Panel, Points, Role
from autotune.pictures.files import save, to_svg, variable
from autotune.pictures.matplotlib import to_matplotlib
from autotune.pictures.palette import DARK, GRID, INK, LOOKS, PAPER, SERIES
from autotune.pictures.predictions import calibration
from autotune.scheduling.hyperband import Bracket
from spaces import Choice, Integer, Space
from tests.autotune.pictures.studies import CONFIRMED, HOSTILE, SCORE, legged, summary, trial, varied
from tests.support.fakes import took

POINTS = {"without its machine": {HOSTILE: [(1.0, 1.1, 0.9, 1.3), (2.0, 1.9, 1.5, 2.2)], "b": [(3.0, 3.0, 2.0, 4.0)]}}


def all_charts() -> list[Chart]:
    effects = (OptionEffect((HOSTILE,), {HOSTILE: HOSTILE}, {HOSTILE: HOSTILE}, (1.5, 1.4, 1.6), None),)
    taken = Ablation(12, 0.95, 6, effects, baseline=3.0, combined=(1.5, 1.4, 1.6))
    warm = WarmStart((trial(3).configuration,), (1.8, 1.5, 2.2))
    found = charts_of(replace(varied(CONFIRMED), ablation=taken, warm=warm))
    steps = charts_of(summary(legged(0, [0.1] * 9), legged(1, [0.2]), metric=SCORE), [Bracket((1, 1), (1, 9))])
    space = Space([Integer("np", (1, 2)), Choice("word", (HOSTILE, "b"))])
    trials = [trial(k, took(1.0 + k), np=1 + k % 2, word=(HOSTILE, "b")[k % 2]) for k in range(4)]
    hostile = [replace(one, name=f"{one.name}-x") for one in charts_of(summary(*trials, space=space))]
    return [*found, *(one for one in steps if one.name == "curves"), *hostile, calibration(POINTS)]


CHARTS = {chart.name: chart for chart in all_charts()}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=list(CHARTS))
def test_the_page_gets_every_mark_with_its_role_and_no_colour(chart):
    found = chart.to_dict()
    text = json.dumps(found, allow_nan=False)
    assert "color" not in text
    assert len(found["panels"]) == len(chart.panels)
    for drawn, panel in zip(found["panels"], chart.panels, strict=True):
        assert [mark["role"] for mark in drawn["marks"]] == [mark.role for mark in panel.marks]
        assert drawn["x"]["title"] == panel.x.text
        for mark in drawn["marks"]:
            places = mark["y"] if "y" in mark else mark["x"]
            sizes = {len(mark[name]) for name in ("x", "values", "hover", "words", "low") if name in mark}
            assert sizes == {len(places)}


@pytest.mark.parametrize("chart", CHARTS.values(), ids=list(CHARTS))
def test_the_svg_is_part_of_a_page_and_needs_nothing_else(chart):
    svg = to_svg(chart)
    element = ET.fromstring(svg.replace("\x00", ""))
    assert element.tag == "svg"
    assert "http" not in svg
    assert "<script" not in svg
    names = re.findall(r'\bid="([^"]*)"', svg)
    assert len(names) == len(set(names))
    assert all(name.startswith(f"{chart.name}-") for name in names)
    assert set(re.findall(r'(?:url\(|href=")#([^")]*)', svg)) <= set(names)
    # Every colour has a counterpart for dark screens.
    assert set(re.findall(r"var\((--c\w+), #", svg)) <= {variable(colour) for colour in DARK}
    assert not re.search(r"(?<!, )#[0-9a-f]{6}\b", re.sub(r'(?:href="|url\()#[^")]*', "", svg))


def test_one_chart_makes_one_svg():
    assert to_svg(CHARTS["progress"]) == to_svg(CHARTS["progress"])


def test_every_role_has_a_look_and_every_colour_one_for_the_dark():
    assert set(LOOKS) == set(Role)
    used = {look.colour for look in LOOKS.values()} | {INK, GRID, PAPER, *SERIES}
    assert used == set(DARK)


def test_text_with_dollars_is_text_and_no_formula():
    figure = to_matplotlib(CHARTS["slices-x"], title=True)
    words = [text.get_text() for text in figure.findobj(lambda one: hasattr(one, "get_text"))]
    assert any(r"\$" in word or "</svg>" in word for word in words)
    figure.canvas.draw()


@pytest.mark.parametrize(("places", "log"), [((0.05, 0.1, 0.2, 0.8), True), ((0.1, 0.2, 0.3), False), ((3.0,), False)])
def test_named_places_lie_within_the_picture_and_fill_it(places, log):
    axis = Axis("interval", log=log, ticks=tuple((place, f"{place}") for place in places))
    marks = (Points(Role.TRIAL, "one value", places, (1.0,) * len(places), ("",) * len(places)),)
    (axes,) = to_matplotlib(replace(CHARTS["progress"], panels=(Panel(axis, Axis("time"), marks),))).axes
    low, high = axes.get_xlim()
    shares = axes.transAxes.inverted().transform(axes.transData.transform([(place, 1.0) for place in places]))[:, 0]
    assert low < min(places) <= max(places) < high
    assert len(places) == 1 or shares[-1] - shares[0] > 0.6


@pytest.mark.parametrize("ending", FORMATS)
def test_pictures_are_files_of_every_format(tmp_path, ending):
    save(CHARTS["progress"], tmp_path / f"deep/er{ending}")
    draw_calibration(POINTS, tmp_path / f"model{ending}")
    draw_calibration({"without its machine": {}}, tmp_path / f"empty{ending}")
    starts = {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF"}
    for name in ("deep/er", "model", "empty"):
        content = (tmp_path / f"{name}{ending}").read_bytes()
        assert content.startswith(starts[ending])
        assert len(content) > 1000


@pytest.mark.parametrize(("named_by", "option"), [({}, "--picture"), ({"named_by": "--png"}, "--png")])
def test_a_picture_that_cannot_be_written_says_which_option_to_change(tmp_path, named_by, option):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotRunHereError, match=option):
        save(CHARTS["progress"], tmp_path / "file" / "a.png", **named_by)
