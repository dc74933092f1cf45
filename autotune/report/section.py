"""The sections and parts of a report, independent of its format."""

from dataclasses import dataclass
from typing import Any

from autotune.pictures.chart import Chart, Table


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Figures:
    """A table with its caption."""

    caption: str
    table: Table


@dataclass(frozen=True)
class Code:
    """Text to copy verbatim, with its caption `about`."""

    text: str
    about: str


@dataclass(frozen=True)
class Picture:
    """A chart; formats also write its title, description and figures."""

    chart: Chart


Part = Words | Figures | Code | Picture


@dataclass(frozen=True)
class Section:
    """A part of a report under a title; `key` is its anchor in the document."""

    key: str
    title: str
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"key": self.key, "title": self.title, "parts": [_to_dict(part) for part in self.parts]}


def _to_dict(part: Part) -> dict[str, Any]:
    match part:
        case Words():
            return {"text": part.text}
        case Figures():
            return {"table": _table(part.table) | {"caption": part.caption}}
        case Code():
            return {"code": part.text, "about": part.about}
        case Picture():
            chart = part.chart
            described = {"name": chart.name, "title": chart.title, "description": chart.description}
            return {"picture": described | {"table": _table(chart.table)}}


def _table(table: Table) -> dict[str, Any]:
    return {"columns": list(table.columns), "rows": [list(row) for row in table.rows]}
