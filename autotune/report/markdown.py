"""Write a report as GitHub Markdown, with links to the files of its pictures if there are any."""

import re
from collections.abc import Mapping, Sequence

from autotune.pictures.chart import Cell, Chart, Table
from autotune.report.report import Report
from autotune.report.section import Code, Figures, Part, Picture, Section, Words

_ROWS = 25
_SPECIAL = re.compile(r"([\\`*\[\]<>|~$])|(?<![^\W_])(_)|(_)(?![^\W_])")
# Characters that begin a heading, a rule or a list at the start of a line.
_MARKED = re.compile(r"^(?=[#+=-])")
_NUMBERED = re.compile(r"^(\d+)([.)])(?=\s|$)")


def to_markdown(report: Report, pictures: Mapping[str, str] | None = None) -> str:
    """Return the report as Markdown; `pictures` has the addresses of picture files by the names of the charts."""
    blocks = [f"# {_plain(report.title)}"]
    if report.description:
        blocks.append(_plain(report.description))
    blocks.append(f"**{_plain(report.headline.sentence)}**")
    if report.headline.remarks:
        blocks.append("\n".join(f"- {_plain(remark)}" for remark in report.headline.remarks))
    blocks.append(_table(Table(("", "value"), report.figures), ""))
    blocks += [_section(section, pictures or {}) for section in report.sections]
    return "\n\n".join(blocks) + "\n"


def _section(section: Section, pictures: Mapping[str, str]) -> str:
    return "\n\n".join([f"## {_plain(section.title)}", *(_part(part, pictures) for part in section.parts)])


def _part(part: Part, pictures: Mapping[str, str]) -> str:
    match part:
        case Words():
            return _plain(part.text)
        case Figures():
            return _table(part.table, part.caption)
        case Code():
            return f"{_plain(part.about)}:\n\n{_fence(part.text)}"
        case Picture():
            return _picture(part.chart, pictures.get(part.chart.name))


def _picture(chart: Chart, address: str | None) -> str:
    lines = [f"**{_plain(chart.title)}.** {_plain(chart.description)}"]
    if address is not None:
        lines.insert(0, f"![{_plain(chart.title)}](<{address}>)")
    else:
        lines.append(_table(chart.table, ""))
    return "\n\n".join(lines)


def _table(table: Table, caption: str) -> str:
    lines = [_row(table.columns), "|" + "---|" * len(table.columns), *(_row(row) for row in table.rows[:_ROWS])]
    left = len(table.rows) - _ROWS
    if left > 0:
        lines += ["", f"({left} more rows are left out; `--format json` has all)"]
    return "\n".join([*([f"{_plain(caption)}:", ""] if caption else []), *lines])


def _row(cells: Sequence[Cell]) -> str:
    return f"| {' | '.join(_plain(_cell(cell), start=False) for cell in cells)} |"


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _fence(text: str) -> str:
    """Return code between fences that are longer than any fence in it."""
    longest = max((len(fence) for fence in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text.rstrip()}\n{fence}"


def _plain(text: str, *, start: bool = True) -> str:
    """Return text as one line in which markup, HTML, and a list or heading at its start are escaped."""
    escaped = _SPECIAL.sub(r"\\\g<0>", " ".join(text.split()).replace("&", "&amp;"))
    if not start:
        return escaped
    return _MARKED.sub(r"\\", _NUMBERED.sub(r"\1\\\2", escaped))
