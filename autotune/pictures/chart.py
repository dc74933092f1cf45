"""Charts: what a picture shows, in words of the field. No colours and no library: those are the renderers'.

All places are numbers. What is not a number (words, "unset", the names of bars) has a place on an axis with ticks.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

Cell = str | int | float | None
"""A cell of a table; None is empty."""


class Role(StrEnum):
    """What a mark means. Each renderer chooses a colour and a shape for it, for light and for dark."""

    TRIAL = "trial"
    """A trial with a value, or an option of the winner."""
    BEST = "best"
    """The best so far, or the best few."""
    WINNER = "winner"
    BASELINE = "baseline"
    """The default configuration."""
    BAND = "band"
    """How uncertain a line is."""
    CAPPED = "capped"
    """A run that was stopped since it had lost, drawn at its bound."""
    FAILED = "failed"
    INVALID = "invalid"
    """A run with a wrong answer."""
    PAUSED = "paused"
    """A trial that was left before its last step."""
    RUNG = "rung"
    """A step at which Hyperband chooses."""
    SPENT = "spent"
    SAVED = "saved"
    PREDICTED = "predicted"
    MEASURED = "measured"
    GUIDE = "guide"
    """A line that only helps to read: a diagonal, an axis of parallel coordinates."""
    SERIES = "series"
    """One of several of a kind, told apart by their number."""


@dataclass(frozen=True)
class Axis:
    """An axis; with `ticks`, (place, label), those and no others are written. `reverse`: the least is on top.

    On a `whole` one things are counted: there is nothing between two of them.
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
    """Points with what each says when it is pointed at; `low` and `high` are the ends of their intervals."""

    role: Role
    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    hover: tuple[str, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    sideways: bool = False
    """Whether the intervals are of x."""
    number: int = 0
    """Which of the series it is."""


@dataclass(frozen=True)
class Line:
    """A line through points; None is a gap. With `steps` it stays until the next point, and jumps there."""

    role: Role
    label: str
    x: tuple[float | None, ...]
    y: tuple[float | None, ...]
    steps: bool = False
    hover: tuple[str, ...] = ()
    number: int = 0
    """Which of the series it is."""


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
    """Horizontal bars at the places `y`, from 0 or from their `starts`, with the ends of their intervals if known."""

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
    """Words at places of the panel."""

    role: Role
    x: tuple[float, ...]
    y: tuple[float, ...]
    words: tuple[str, ...]


Mark = Points | Line | Band | Bars | Texts


@dataclass(frozen=True)
class Panel:
    """One pair of axes with its marks: the first are drawn first."""

    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    title: str = ""


@dataclass(frozen=True)
class Table:
    """The figures of a chart, for readers who cannot or will not look at it."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        """Refuse rows of another length."""
        for row in self.rows:
            if len(row) != len(self.columns):
                msg = f"a table of {len(self.columns)} columns got the row {row}"
                raise ValueError(msg)


@dataclass(frozen=True)
class Chart:
    """A picture: its `description` says in a sentence what it shows, with the figures, for readers who do not see it.

    Of its panels `columns` are side by side where there is room. `name` is unique among the charts of a study, and is
    used in addresses and in names of files.
    """

    name: str
    title: str
    description: str
    panels: tuple[Panel, ...]
    table: Table
    columns: int = 1

    @property
    def same_y(self) -> bool:
        """Whether all panels have the same y axis, so that it is enough to write its title once a row."""
        return len({panel.y.text for panel in self.panels}) == 1

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles of its marks, each once, in the order in which they are drawn."""
        return tuple(dict.fromkeys(mark.role for panel in self.panels for mark in panel.marks))

    def to_dict(self) -> dict[str, Any]:
        """Return the panels with their axes and marks, JSON-able, for the page, which draws them.

        Each mark has its `kind` (`points`, `line`, `band`, `bars` or `texts`) and its role; empty fields are left out.
        """
        return {"columns": self.columns, "panels": [_drawn(panel) for panel in self.panels]}


def _drawn(panel: Panel) -> dict[str, Any]:
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
