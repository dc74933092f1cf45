"""The picture of a decision table."""

import json

from autotune.decisions.table import DecisionTable
from autotune.pictures.chart import Line, Points, Role
from autotune.pictures.decisions import decisions
from autotune.pictures.files import to_svg
from objectives.base import Metric
from objectives.decision import Decision

OWN, TREE = {"way": "own"}, {"way": "tree"}
SIZES = (8.0, 512.0, 32768.0, 1048576.0)


def table(*groups, points="bytes", metric=None, values=None):
    cells = tuple(one for group in groups for one in group)
    found = tuple(values) if values is not None else tuple(10.0 * (one.point or 1.0) for one in cells)
    return DecisionTable(metric or Metric("latency_s", "s"), ("op",), points, 0.95, cells, defaults=found)


def better(op, point, pairs=8):
    return Decision({"op": op}, point, TREE, OWN, 2.0, 1.6, 2.5, pairs)


def kept(op, point):
    return Decision({"op": op}, point, OWN, OWN)


def marks(panel, kind, role):
    return [mark for mark in panel.marks if isinstance(mark, kind) and mark.role is role]


def test_a_context_has_a_panel_with_the_default_the_decisions_and_where_they_change():
    found = table([better("sum", point) for point in SIZES[:2]] + [kept("sum", point) for point in SIZES[2:]],
                  [kept("copy", point) for point in SIZES])  # fmt: skip
    chart = decisions(found)
    assert [panel.title for panel in chart.panels] == ["sum", "copy"]
    first, second = chart.panels
    assert first.x.log
    assert [text for _, text in first.x.ticks] == ["8", "512", "32 KiB", "1 MiB"]
    (series,) = marks(first, Points, Role.SERIES)
    assert (series.label, series.x, series.y) == ("way=tree", (8.0, 512.0), (40.0, 2560.0))
    assert (series.low, series.high) == ((32.0, 2048.0), (50.0, 3200.0))
    assert "2.000 times better than the default (1.600 to 2.500)" in series.hover[0]
    (change,) = marks(first, Line, Role.GUIDE)
    assert 512.0 < change.x[0] < 32768.0
    assert not marks(second, Line, Role.GUIDE)
    assert not marks(second, Points, Role.SERIES)
    assert "2 of 8 cells" in chart.description
    assert chart.table.rows[0] == ("sum", "8", "way=tree", 80.0, 40.0, 2.0, 1.6, 2.5, 8)
    assert "way=tree" in to_svg(chart)
    assert json.dumps(chart.to_dict(), allow_nan=False)


def test_cells_without_fresh_runs_are_hollow():
    rate = Metric("rate", "B/s", "maximize")
    (panel,) = decisions(table([better("sum", 8.0, pairs=0), better("sum", 16.0)], metric=rate)).panels
    (model,) = marks(panel, Points, Role.PREDICTED)
    assert (model.y, model.low, model.high) == ((160.0,), (128.0,), (200.0,))
    assert "model" in model.label


def test_without_an_order_the_contexts_are_beside_each_other_and_without_runs_there_is_no_picture():
    words = [better("sum", None), kept("copy", None)]
    (panel,) = decisions(table(words, points=None)).panels
    assert [text for _, text in panel.x.ticks] == ["op=sum", "op=copy"]
    assert decisions(table(words, points=None, values=(None, None))) is None
    (panel,) = decisions(table([kept("barrier", 0.0)], values=(3.0,))).panels
    assert [text for _, text in panel.x.ticks] == ["0"]


def test_contexts_that_differ_most_from_the_default_are_drawn():
    groups = [[kept(f"op{number}", size) for size in SIZES] for number in range(40)]
    groups.append([better("sum", size) for size in SIZES])
    chart = decisions(table(*groups))
    assert len(chart.panels) == 24
    assert chart.panels[-1].title == "sum"
    assert "24 of 41 contexts" in chart.description
