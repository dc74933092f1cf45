"""Sections: the parts of a report, before they are written in one of its formats."""

from dataclasses import dataclass
from typing import Any

from autotune.pictures.chart import Chart, Table


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Figures:
    """A table with what it shows."""

    caption: str
    table: Table


@dataclass(frozen=True)
class Code:
    """Text that is to be copied as it is; `about` names it."""

    text: str
    about: str


@dataclass(frozen=True)
class Picture:
    """A chart with its title, its description, and its figures as a table."""

    chart: Chart


Part = Words | Figures | Code | Picture


@dataclass(frozen=True)
class Section:
    """A part of a report under a title; `key` is its address in the document."""

    key: str
    title: str
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {"key": self.key, "title": self.title, "parts": [_stored(part) for part in self.parts]}


def _stored(part: Part) -> dict[str, Any]:
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
