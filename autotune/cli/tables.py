"""Tables that fit the terminal.

On a narrow terminal the least important columns are left out. If even the others do not fit, each row becomes a
paragraph with all columns. A pipe or a file gets the whole table.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.formatting import plain_line

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

# Characters that borders and spaces add to each column; the left border adds one more.
_AROUND = 3
# The least width of the last column, whose text may be wrapped.
_LEAST_TEXT = 24


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        title: Its title.
        weight: On a narrow terminal, columns of the least weight are left out first; 0 means never.
        legend: Its meaning, printed below the table if the column is shown.
    """

    title: str
    weight: int = 0
    legend: str = ""


def fit_table(
    columns: Sequence[Column],
    rows: Sequence[Sequence[str]],
    console: "Console",
    bold: int | None = None,
) -> "RenderableType":
    """Return a table that fits the console, or a paragraph for each row if the console is too narrow.

    Args:
        columns: The columns; the text of the last one is wrapped.
        rows: The cells of each row; each is printed as one line.
        console: The console that the table must fit.
        bold: The index of a row to print in bold.
    """
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    rows = [[plain_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, (column.title, *(row[index] for row in rows)))) for index, column in enumerate(columns)]
    shown = _columns_that_fit(columns, widths, console.width)
    if _least_width(shown, widths) > console.width:
        paragraphs = (_paragraph(columns, row, is_bold=number == bold) for number, row in enumerate(rows))
        return Group(*paragraphs, *_legend(columns))
    table = Table()
    for index in shown:
        is_text = index == len(columns) - 1
        table.add_column(Text(columns[index].title), no_wrap=not is_text, overflow="fold")
    for number, row in enumerate(rows):
        table.add_row(*(Text(row[index]) for index in shown), style="bold green" if number == bold else "")
    lines = _legend([columns[index] for index in shown])
    left_out = [column.title for index, column in enumerate(columns) if index not in shown]
    if left_out:
        lines.append(Text(f"left out for lack of room: {', '.join(left_out)} (use a pipe or a wider terminal)"))
    return Group(table, *lines)


def _legend(columns: Sequence[Column]) -> "list[RenderableType]":
    """Return one line on the columns that have a legend; none without such columns."""
    from rich.text import Text

    known = [f"{column.title}: {column.legend}" for column in columns if column.legend]
    return [Text("; ".join(known))] if known else []


def _paragraph(columns: Sequence[Column], row: Sequence[str], *, is_bold: bool) -> "RenderableType":
    """Return a row as lines: its first cell, then each other cell with its title."""
    from rich.console import Group
    from rich.table import Table
    from rich.text import Text

    cells = Table.grid(padding=(0, 1), pad_edge=False)
    cells.add_column(no_wrap=True)
    cells.add_column(overflow="fold")
    for column, cell in zip(columns[1:], row[1:], strict=True):
        cells.add_row(Text(f"  {column.title}:"), Text(cell))
    return Group(Text(row[0], style="bold green" if is_bold else "bold"), cells)


def _columns_that_fit(columns: Sequence[Column], widths: Sequence[int], room: int) -> list[int]:
    """Return the indexes of the columns that fit into `room` characters."""
    shown = list(range(len(columns)))
    while _least_width(shown, widths) > room:
        candidates = [index for index in shown if columns[index].weight]
        if not candidates:
            break
        shown.remove(min(candidates, key=lambda index: columns[index].weight))
    return shown


def _least_width(shown: Sequence[int], widths: Sequence[int]) -> int:
    """Return the number of characters that these columns need at least."""
    text = len(widths) - 1
    fixed = sum(widths[index] + _AROUND for index in shown if index != text)
    return 1 + fixed + min(widths[text], _LEAST_TEXT) + _AROUND
