"""Draw charts as matplotlib figures, for files and for the report."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from math import ceil
from types import ModuleType
from typing import TYPE_CHECKING, Any

from autotune.pictures.chart import Axis, Band, Bars, Chart, Line, Mark, Panel, Points, Role, Texts, stairs
from autotune.pictures.palette import (
    GRID,
    INK,
    LOOKS,
    PAPER,
    SERIES,
    SERIES_MARKERS,
    Look,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH_INCHES = 8.4
_PANEL_INCHES = 3.9
_ROW_INCHES = 2.25
_BAR_INCHES = 0.3
_THIN_BAR_INCHES = 0.19
_SMALL = 7.5
_TEXT = 9.0
_BAR_HEIGHT = 0.65
_STEEP = 30.0
# Slant the words under an axis if they have more letters than this together.
_LETTERS_ACROSS = 26
# Outside this range a number is easier to read with a prefix: 350 M.
_PLAIN = (1e-3, 1e5)
# If a logarithmic axis spans less than this ratio, ticks at decades alone are too few.
_NARROW = 100.0


@cache
def import_matplotlib() -> ModuleType:
    """Return matplotlib without the settings of a file `matplotlibrc`, which others may have left in this folder."""
    import matplotlib as mpl  # noqa: PLC0415  takes a second to import

    mpl.rcdefaults()
    return mpl


def to_matplotlib(chart: Chart, *, title: bool = False) -> "Figure":
    """Return the figure of a chart, as wide as a page; `title` adds its title, for use in another document."""
    import_matplotlib()
    from matplotlib.figure import Figure  # noqa: PLC0415  takes a second to import

    across = max(1, min(chart.columns, len(chart.panels)))
    down = ceil(len(chart.panels) / across)
    figure = Figure(figsize=(WIDTH_INCHES, _height(chart, down)), layout="constrained", facecolor="none")
    for number, panel in enumerate(chart.panels, start=1):
        axes = figure.add_subplot(down, across, number)
        _draw(axes, panel, lonely=len(chart.panels) == 1)
        if (number - 1) % across and chart.same_y:
            axes.set_ylabel("")
    _draw_legend(figure, chart, _plain(chart.title) if title else "")
    return figure


def _height(chart: Chart, down: int) -> float:
    bars = [len({y for mark in panel.marks if isinstance(mark, Bars) for y in mark.y}) for panel in chart.panels]
    if len(chart.panels) == 1:
        return 1.1 + _BAR_INCHES * bars[0] if bars[0] else _PANEL_INCHES
    if any(bars):
        return down * (1.1 + _THIN_BAR_INCHES * max(bars))
    return 0.5 + _ROW_INCHES * down if down > 1 else _PANEL_INCHES


def _draw(axes: "Axes", panel: Panel, *, lonely: bool) -> None:
    size = _TEXT if lonely else _SMALL
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        axes.spines[side].set_color(INK)
        axes.spines[side].set_visible(not _is_bare(panel))
    axes.tick_params(which="both", colors=INK, labelsize=size - 0.5)
    if not _is_bare(panel):
        axes.grid(visible=True, color=GRID, lw=0.6, axis="x" if _has_bars(panel) else "both")
    axes.set_axisbelow(True)
    for mark in panel.marks:
        _draw_mark(axes, mark)
    if panel.title:
        axes.set_title(_plain(panel.title), fontsize=size + 0.5, color=INK, loc="left")
    axes.set_xlabel(_plain(panel.x.text), fontsize=size, color=INK)
    axes.set_ylabel(_plain(panel.y.text), fontsize=size, color=INK)
    _scale(axes, panel.x, "x")
    _scale(axes, panel.y, "y")


def _is_bare(panel: Panel) -> bool:
    """Whether the panel draws its own axes, as parallel coordinates do."""
    return any(isinstance(mark, Texts) for mark in panel.marks)


def _has_bars(panel: Panel) -> bool:
    return any(isinstance(mark, Bars) for mark in panel.marks)


def _scale(axes: "Axes", axis: Axis, which: str) -> None:
    if axis.log:
        (axes.set_xscale if which == "x" else axes.set_yscale)("log")
    if axis.ticks is not None:
        _set_word_ticks(axes, axis.ticks, which, log=axis.log)
    else:
        _set_number_ticks(axes, axis, which)
    if axis.reverse:
        low, high = sorted(axes.get_ylim())
        axes.set_ylim(high, low)


def _set_word_ticks(axes: "Axes", ticks: Sequence[tuple[float, str]], which: str, *, log: bool) -> None:
    scale = axes.xaxis if which == "x" else axes.yaxis
    positions, words = [position for position, _ in ticks], [_plain(text) for _, text in ticks]
    scale.set_ticks(positions, words)
    if which == "x" and sum(map(len, words)) > _LETTERS_ACROSS:
        for label in scale.get_ticklabels():
            label.set(rotation=_STEEP, ha="right", rotation_mode="anchor")
    if positions and not log:  # a logarithmic axis has its own margin, and the left end could become negative
        _with_room(axes, positions, which)


def _set_number_ticks(axes: "Axes", axis: Axis, which: str) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, MaxNLocator, NullFormatter  # noqa: PLC0415

    scale = axes.xaxis if which == "x" else axes.yaxis
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    if axis.log:
        scale.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < _NARROW * low else (1.0,)))
        scale.set_minor_formatter(NullFormatter())
    if axis.unit and (high >= _PLAIN[1] or high < _PLAIN[0]):
        scale.set_major_formatter(EngFormatter())
    elif axis.log:
        scale.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    elif axis.whole:
        scale.set_major_locator(MaxNLocator(integer=True))


def _with_room(axes: "Axes", places: Sequence[float], which: str) -> None:
    """Leave a margin of half a position beside the first and the last."""
    low, high = sorted(axes.get_xlim() if which == "x" else axes.get_ylim())
    half = min((b - a for a, b in pairwise(sorted(set(places)))), default=1.0) / 2
    ends = min(low, min(places) - half), max(high, max(places) + half)
    if which == "x":
        axes.set_xlim(*ends)
    else:
        axes.set_ylim(*ends)


def _look(mark: Mark) -> tuple[Look, str]:
    look = LOOKS[mark.role]
    if isinstance(mark, Points | Line) and mark.role is Role.SERIES:
        number = mark.number % len(SERIES)
        return replace(look, marker=SERIES_MARKERS[number]), SERIES[number]
    return look, look.colour


def _draw_mark(axes: "Axes", mark: Mark) -> None:
    look, colour = _look(mark)
    common: dict[str, Any] = {"zorder": look.above, "label": _plain(mark.label) if not isinstance(mark, Texts) else ""}
    match mark:
        case Points():
            _draw_points(axes, mark, look, colour, common)
        case Line():
            _draw_line(axes, mark, look, colour, common)
        case Band():
            x, low = stairs(mark.x, mark.low) if mark.steps else (list(mark.x), list(mark.low))
            _, high = stairs(mark.x, mark.high) if mark.steps else (list(mark.x), list(mark.high))
            axes.fill_between(x, low, high, color=colour, alpha=look.alpha, lw=0, **common)
        case Bars():
            _draw_bars(axes, mark, colour, common)
        case Texts():
            for at, level, words in zip(mark.x, mark.y, mark.words, strict=True):
                axes.annotate(
                    _plain(words),
                    (at, level),
                    (3, 0),
                    textcoords="offset points",
                    fontsize=_SMALL - 0.5,
                    color=INK,
                    va="center",
                    bbox={"facecolor": PAPER, "alpha": 0.7, "lw": 0, "pad": 0.6},
                    zorder=9,
                )


def _draw_points(axes: "Axes", mark: Points, look: Look, colour: str, common: dict[str, Any]) -> None:
    errors: dict[str, Any] = {"elinewidth": 1.0, "capsize": 2.5, "ecolor": colour} if mark.low else {}
    if mark.low:
        errors["xerr" if mark.sideways else "yerr"] = _whiskers(mark.x if mark.sideways else mark.y, mark)
    axes.errorbar(
        mark.x,
        mark.y,
        **errors,
        fmt=look.marker,
        ms=look.size,
        color=colour,
        mec=colour,
        mfc="none" if look.hollow else colour,
        mew=1.3 if look.hollow or look.marker == "x" else 0.4,
        ls="none",
        alpha=look.alpha,
        **common,
    )


def _draw_line(axes: "Axes", mark: Line, look: Look, colour: str, common: dict[str, Any]) -> None:
    nan = float("nan")
    x = [nan if value is None else value for value in mark.x]
    y = [nan if value is None else value for value in mark.y]
    several = None in mark.x
    # Many lines in one mark are drawn faintly, below the few important ones.
    alpha = min(look.alpha, 0.3) if several and mark.role in {Role.TRIAL, Role.PAUSED} else look.alpha
    dash = "-" if several and mark.role is Role.BASELINE else look.dash
    width = look.width if not several or mark.role is not Role.BEST else 1.2
    drawn = "steps-post" if mark.steps else "default"
    axes.plot(x, y, color=colour, lw=width, ls=dash, alpha=alpha, drawstyle=drawn, **common)


def _draw_bars(axes: "Axes", mark: Bars, colour: str, common: dict[str, Any]) -> None:
    whiskers = _whiskers(mark.values, mark) if mark.low else None
    style = {"color": INK, "ecolor": INK, "capsize": 3, "lw": 1}
    starts = mark.starts or (0.0,) * len(mark.values)
    lengths = [value - start for value, start in zip(mark.values, starts, strict=True)]
    axes.barh(mark.y, lengths, left=starts, height=_BAR_HEIGHT, xerr=whiskers, color=colour, error_kw=style, **common)


def _whiskers(values: Sequence[float], mark: Points | Bars) -> tuple[list[float], list[float]]:
    """Return the distances of the interval's ends below and above; at least 0, in spite of rounding errors."""
    below = [max(0.0, value - low) for value, low in zip(values, mark.low, strict=True)]
    return below, [max(0.0, high - value) for value, high in zip(values, mark.high, strict=True)]


def _draw_legend(figure: "Figure", chart: Chart, title: str) -> None:
    handles: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    series = any(role is Role.SERIES for role in chart.roles)
    if title and (series or len(handles) < 2):
        # A legend of series stands beside the picture, where the title has no room.
        figure.suptitle(title, fontsize=_TEXT + 1, fontweight="bold", color=INK, x=0.01, ha="left")
        title = ""
    if len(handles) < 2:
        return
    legend = figure.legend(
        list(handles.values()),
        list(handles),
        loc="outside right upper" if series else "outside upper left",
        ncols=1 if series else min(6, len(handles)),
        fontsize=_SMALL,
        frameon=False,
        labelcolor=INK,
        handletextpad=0.5,
        columnspacing=1.4,
        title=title or None,
        title_fontproperties={"size": _TEXT + 1, "weight": "bold"},
        alignment="left",
    )
    legend.get_title().set_color(INK)


def _plain(text: str) -> str:
    """Return text without unprintable letters, escaped so that matplotlib does not read it as a formula."""
    return "".join(letter if letter.isprintable() else "�" for letter in text).replace("$", r"\$")
