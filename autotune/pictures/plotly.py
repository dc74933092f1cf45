"""Charts as Plotly figures: plain dictionaries for a page that has plotly.js.

No colour is set. Every trace has `meta.role`, by which the page colours it, in light and in dark. The page has the
chart's title and its description; here are axes with units, and what a point says when it is pointed at.
Reference: https://plotly.com/javascript/reference/.
"""

import html
import textwrap
from collections.abc import Sequence
from math import ceil, log10
from typing import Any

from autotune.pictures.chart import Axis, Band, Bars, Chart, Line, Mark, Panel, Points, Role, Texts, stairs

Figure = dict[str, Any]

_SYMBOLS = {
    Role.TRIAL: "circle",
    Role.BEST: "circle",
    Role.WINNER: "star",
    Role.BASELINE: "diamond",
    Role.CAPPED: "triangle-up-open",
    Role.PAUSED: "circle-open",
    Role.FAILED: "x",
    Role.INVALID: "cross",
    Role.PREDICTED: "circle-open",
    Role.MEASURED: "diamond",
}
_SIZES = {Role.WINNER: 13, Role.BASELINE: 10, Role.MEASURED: 9}
_SIZE = 7
_WIDTHS = {Role.BEST: 2.5, Role.WINNER: 3.0, Role.BASELINE: 2.0}
_DASHES = {Role.BASELINE: "dash", Role.RUNG: "dot", Role.GUIDE: "dot"}
# Many lines over each other are only a shade; the few that matter are on top of them.
_OPACITIES = {Role.TRIAL: 0.75, Role.PAUSED: 0.6, Role.BAND: 0.3, Role.GUIDE: 0.6}
_FAINT_LINES = {Role.TRIAL: 0.35, Role.PAUSED: 0.35}
_LETTERS = 60
_ROW_PX = 260
_BAR_PX = 34
_PANEL_PX = 400
_GAP = 0.09
_TITLE_PX = 22
_UPRIGHT = -90
# Plotly knows a trace's axes by these.
_NOTHING = {"showgrid": False, "zeroline": False, "showline": False}


def to_plotly(chart: Chart, columns: int | None = None) -> Figure:
    """Return the figure, `data` and `layout`, JSON-able.

    `columns` is the most panels side by side, for example 1 on a phone; the chart's own number by default.
    """
    across = max(1, min(columns or chart.columns, len(chart.panels)))
    down = ceil(len(chart.panels) / across)
    data: list[Figure] = []
    heights = _heights(chart, across)
    layout: Figure = {
        "autosize": True,
        "height": sum(heights) + 90,
        "margin": {"l": 16, "r": 16, "t": 44, "b": 16, "pad": 2},
        "hovermode": "closest",
        "barmode": "overlay",
        "legend": {"orientation": "h", "x": 0, "y": 1.0, "xanchor": "left", "yanchor": "bottom"},
        "annotations": [],
    }
    seen: set[str] = set()
    for index, panel in enumerate(chart.panels):
        key = "" if index == 0 else str(index + 1)
        domain = _domain(index, across, heights)
        layout[f"xaxis{key}"] = _axis(panel.x, domain[0], f"y{key}", panel)
        layout[f"yaxis{key}"] = _axis(panel.y, domain[1], f"x{key}", panel)
        if index % across and chart.same_y:
            layout[f"yaxis{key}"].pop("title", None)
        for mark in panel.marks:
            if isinstance(mark, Texts):
                layout["annotations"] += _words(mark, key)
            else:
                data.append(_trace(mark, key, seen))
        if panel.title:
            layout["annotations"].append(_title(panel.title, domain))
        if any(isinstance(mark, Texts) for mark in panel.marks):
            # The axes of parallel coordinates have long names, and words beside the last.
            layout["margin"] |= {"r": 56, "l": 24}
            layout[f"xaxis{key}"]["tickangle"] = _UPRIGHT
    if any(panel.title for panel in chart.panels):
        layout["legend"]["y"] = 1.0 + _TITLE_PX / sum(heights)
        layout["margin"]["t"] += _TITLE_PX
    layout["showlegend"] = len(seen) > 1
    layout["meta"] = {"panels": len(chart.panels), "columns": across, "rows": down}
    return {"data": data, "layout": layout}


def _heights(chart: Chart, across: int) -> list[float]:
    """Return the height of each row of panels, in pixels."""
    if across == len(chart.panels) == 1:
        bars = sum(len(mark.y) for mark in chart.panels[0].marks if isinstance(mark, Bars))
        return [max(160.0, _BAR_PX * bars)] if bars else [float(_PANEL_PX)]
    return [float(_ROW_PX)] * ceil(len(chart.panels) / across)


def _domain(index: int, across: int, heights: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the part of the figure that a panel has: from left to right, and from the bottom to the top."""
    row, column = divmod(index, across)
    whole = sum(heights)
    gap_y = min(0.25, 90.0 / whole) if len(heights) > 1 else 0.0
    width = (1.0 - _GAP * (across - 1)) / across
    left = column * (width + _GAP)
    height = (1.0 - gap_y * (len(heights) - 1)) / len(heights)
    top = 1.0 - row * (height + gap_y)
    return [round(left, 6), round(left + width, 6)], [round(max(0.0, top - height), 6), round(top, 6)]


def _axis(axis: Axis, domain: list[float], anchor: str, panel: Panel) -> Figure:
    options: Figure = {"domain": domain, "anchor": anchor, "automargin": True, "zeroline": False}
    if axis.text:
        options["title"] = {"text": _plain(axis.text), "standoff": 8}
    if axis.log:
        options |= {"type": "log", "dtick": _DECADES} if axis.ticks is None else {"type": "log"}
        if axis.ticks is None and _decades(panel, horizontal=axis is panel.x) < 2.0:
            options["dtick"] = _DIGITS
    if axis.ticks is not None:
        options |= {
            "tickmode": "array",
            "tickvals": [position for position, _ in axis.ticks],
            "ticktext": [_plain(text) for _, text in axis.ticks],
        }
        if not axis.ticks:
            options |= _NOTHING | {"showticklabels": False}
    if axis.reverse:
        options["autorange"] = "reversed"
    return options


_DECADES = 1
# 1, 2 and 5 of each decade.
_DIGITS = "D2"


def _decades(panel: Panel, *, horizontal: bool) -> float:
    values = [value for mark in panel.marks for value in _extent(mark, horizontal=horizontal) if value and value > 0.0]
    return log10(max(values) / min(values)) if values else 0.0


def _extent(mark: Mark, *, horizontal: bool) -> Sequence[float | None]:
    match mark:
        case Bars():
            return mark.values if horizontal else mark.y
        case Band():
            return mark.x if horizontal else (*mark.low, *mark.high)
        case Points():
            ends = (*mark.low, *mark.high) if mark.sideways == horizontal else ()
            return (*(mark.x if horizontal else mark.y), *ends)
        case _:
            return mark.x if horizontal else mark.y


def _trace(mark: Points | Line | Band | Bars, key: str, seen: set[str]) -> Figure:
    name = _plain(mark.label) or mark.role.value
    meta: Figure = {"role": mark.role.value}
    if isinstance(mark, Points) and mark.role is Role.SERIES:
        meta["number"] = mark.number
    shown = bool(mark.label) and mark.label not in seen
    if mark.label:
        seen.add(mark.label)
    common: Figure = {"name": name, "legendgroup": name, "showlegend": shown, "meta": meta}
    common |= {"xaxis": f"x{key}", "yaxis": f"y{key}"}
    match mark:
        case Points():
            return common | _points(mark)
        case Line():
            return common | _line(mark)
        case Band():
            return common | _band(mark)
        case Bars():
            return common | _bars(mark)


def _points(mark: Points) -> Figure:
    trace: Figure = {
        "type": "scatter",
        "mode": "markers",
        "x": list(mark.x),
        "y": list(mark.y),
        "marker": {"symbol": _SYMBOLS.get(mark.role, "circle"), "size": _SIZES.get(mark.role, _SIZE)},
        "opacity": _OPACITIES.get(mark.role, 1.0),
        **_hover(mark.hover),
    }
    if mark.low:
        trace["error_x" if mark.sideways else "error_y"] = _whiskers(mark.x if mark.sideways else mark.y, mark)
    return trace


def _line(mark: Line) -> Figure:
    lone = sum(value is None for value in mark.x) == 0
    return {
        "type": "scatter",
        "mode": "lines",
        "x": list(mark.x),
        "y": list(mark.y),
        "connectgaps": False,
        "opacity": _OPACITIES.get(mark.role, 1.0) if lone else _FAINT_LINES.get(mark.role, 1.0),
        "line": {
            "shape": "hv" if mark.steps else "linear",
            "dash": _DASHES.get(mark.role, "solid") if lone or mark.role is not Role.BASELINE else "solid",
            "width": _WIDTHS.get(mark.role, 1.2),
        },
        **(_hover(mark.hover) if mark.hover else {"hoverinfo": "skip"}),
    }


def _band(mark: Band) -> Figure:
    x, low = stairs(mark.x, mark.low) if mark.steps else (list(mark.x), list(mark.low))
    _, high = stairs(mark.x, mark.high) if mark.steps else (list(mark.x), list(mark.high))
    return {
        "type": "scatter",
        "mode": "lines",
        "x": [*x, *reversed(x)],
        "y": [*high, *reversed(low)],
        "fill": "toself",
        "line": {"width": 0},
        "opacity": _OPACITIES[Role.BAND],
        "hoverinfo": "skip",
    }


def _bars(mark: Bars) -> Figure:
    trace: Figure = {
        "type": "bar",
        "orientation": "h",
        "x": list(mark.values),
        "y": list(mark.y),
        "width": 0.7,
        "textposition": "none",
        **_hover(mark.hover),
    }
    if mark.low:
        trace["error_x"] = _whiskers(mark.values, mark)
    return trace


def _whiskers(values: Sequence[float], mark: Points | Bars) -> Figure:
    return {
        "type": "data",
        "symmetric": False,
        "array": [high - value for value, high in zip(values, mark.high, strict=True)],
        "arrayminus": [value - low for value, low in zip(values, mark.low, strict=True)],
        "thickness": 1.5,
        "width": 4,
    }


def _hover(texts: Sequence[str]) -> Figure:
    return {"text": [_wrapped(text) for text in texts], "hovertemplate": "%{text}<extra></extra>"}


def _words(mark: Texts, key: str) -> list[Figure]:
    return [
        {
            "x": x,
            "y": y,
            "xref": f"x{key}",
            "yref": f"y{key}",
            "text": _plain(words),
            "showarrow": False,
            "xanchor": "left",
            "xshift": 4,
            "font": {"size": 10},
        }
        for x, y, words in zip(mark.x, mark.y, mark.words, strict=True)
    ]


def _title(text: str, domain: tuple[list[float], list[float]]) -> Figure:
    position = {"x": domain[0][0], "y": domain[1][1], "xref": "paper", "yref": "paper"}
    return position | {"text": _plain(text), "showarrow": False, "xanchor": "left", "yanchor": "bottom"}


def _plain(text: str) -> str:
    """Return text that Plotly does not take for markup, nor for a formula."""
    return html.escape(text, quote=False).replace("$", "&#36;")


def _wrapped(text: str) -> str:
    lines = [part for line in text.split("\n") for part in textwrap.wrap(line, _LETTERS) or [""]]
    return "<br>".join(_plain(line) for line in lines)
