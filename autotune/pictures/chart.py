"""Charts as values, without colours and without a plotting library, which belong to the renderers.

All positions are numbers. Words, such as "unset" or the names of bars, have positions on an axis with ticks.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

Cell = str | int | float | None
"""A cell of a table; None is empty."""


class Role(StrEnum):
    """The meaning of a mark. Each renderer chooses its colour and shape, for light and for dark screens."""

    TRIAL = "trial"
    """A trial with a value, or an option of the winner."""
    BEST = "best"
    """The best so far, or the best few."""
    WINNER = "winner"
    BASELINE = "baseline"
    """The default configuration."""
    BAND = "band"
    """The uncertainty of a line."""
    CAPPED = "capped"
    """A run that was stopped because it had lost, at its bound."""
    FAILED = "failed"
    INVALID = "invalid"
    """A run with a wrong answer."""
    PAUSED = "paused"
    """A trial that stopped before its last step."""
    RUNG = "rung"
    """A step at which Hyperband chooses."""
    PREDICTED = "predicted"
    MEASURED = "measured"
    GUIDE = "guide"
    """A line that only helps to read the chart: a diagonal, an axis of parallel coordinates."""
    SERIES = "series"
    """One of several series, which differ by their number."""


@dataclass(frozen=True)
class Axis:
    """An axis.

    Attributes:
        title: Its title.
        unit: The unit of its values.
        log: Whether it is logarithmic.
        ticks: The (position, label) of all ticks; None lets the renderer choose them.
        reverse: Whether the smallest value is at the top.
        whole: Whether its values are counts, so that ticks are whole numbers.
    """

    title: str = ""
    unit: str = ""
    log: bool = False
    ticks: tuple[tuple[float, str], ...] | None = None
    reverse: bool = False
    whole: bool = False

    @property
    def text(self) -> str:
        """The title with the unit."""
        return f"{self.title} [{self.unit}]" if self.unit else self.title


@dataclass(frozen=True)
class Points:
    """Points.

    Attributes:
        role: Their meaning.
        label: Their name in the legend.
        x: Their positions.
        y: Their positions.
        hover: The text shown when the pointer is on a point.
        low: The lower ends of their intervals; empty without intervals.
        high: The upper ends.
        sideways: Whether the intervals are of x instead of y.
        number: The number of the series.
    """

    role: Role
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    hover: tuple[str, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    sideways: bool = False
    number: int = 0


@dataclass(frozen=True)
class Line:
    """A line through points, with gaps at None; with `steps` each value lasts until the next point.

    `number` is the number of the series.
    """

    role: Role
    label: str
    x: tuple[float | None, ...]
    y: tuple[float | None, ...]
    steps: bool = False
    hover: tuple[str, ...] = ()
    number: int = 0


@dataclass(frozen=True)
class Band:
    """The area between two lines; with `steps` as for lines."""

    role: Role
    label: str
    x: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    steps: bool = False


@dataclass(frozen=True)
class Bars:
    """Horizontal bars at the positions `y`, from 0 or their `starts`, with the ends of their intervals if known."""

    role: Role
    label: str
    y: tuple[float, ...]
    values: tuple[float, ...]
    hover: tuple[str, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    starts: tuple[float, ...] = ()


@dataclass(frozen=True)
class Texts:
    """Words at positions in the panel."""

    role: Role
    x: tuple[float, ...]
    y: tuple[float, ...]
    words: tuple[str, ...]


Mark = Points | Line | Band | Bars | Texts


@dataclass(frozen=True)
class Panel:
    """A pair of axes with its marks, in drawing order."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """The figures of a chart as a table, for readers who do not use the picture."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """Check that every row has a cell for each column."""
        for row in self.rows:
            if len(row) != len(self.columns):
                msg = f"a table of {len(self.columns)} columns got the row {row}"
                raise ValueError(msg)


@dataclass(frozen=True)
class Chart:
    """A picture.

    Attributes:
        name: Its name for addresses and files, unique among the charts of a study.
        title: Its title.
        description: A sentence on what it shows, with figures, for readers who do not see it.
        panels: Its panels.
        table: Its figures.
        columns: How many panels stand side by side, if there is room.
    """

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    table: Table
    columns: int = 1

    @property
    def same_y(self) -> bool:
        """Whether all panels have the same y axis, so that its title is needed only once in a row."""
        return len({panel.y.text for panel in self.panels}) == 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of its marks, each once, in drawing order."""
        return tuple(dict.fromkeys(mark.role for panel in self.panels for mark in panel.marks))

    def to_dict(self) -> dict[str, Any]:
        """Return the panels with their axes and marks in JSON-able form, which the page draws.

        Each mark has its `kind` (`points`, `line`, `band`, `bars` or `texts`) and its role; empty fields are left out.
        """
        return {"columns": self.columns, "panels": [_panel_json(panel) for panel in self.panels]}


def _panel_json(panel: Panel) -> dict[str, Any]:
    axes = {name: asdict(axis) | {"title": axis.text} for name, axis in (("x", panel.x), ("y", panel.y))}
    marks = [
        {"kind": type(mark).__name__.lower()}
        | {name: value for name, value in vars(mark).items() if value not in ((), False)}
        for mark in panel.marks
    ]
    return {"title": panel.title, **axes, "marks": marks}


def stairs(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the corners of a line that stays at each y until the next x."""
    xs, ys = list(x[:1]), list(y[:1])
    for position, value in zip(x[1:], y[1:], strict=True):
        xs += [position, position]
        ys += [ys[-1], value]
    return xs, ys
