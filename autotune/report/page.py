"""Write a report as one HTML file without scripts or outside references, with its pictures as inline SVG.

Everything that comes from a study is escaped. The file is also well-formed XML.
"""

import html
import re
from collections.abc import Sequence

from autotune import __version__
from autotune.pictures.chart import Cell, Chart, Table
from autotune.pictures.files import to_svg
from autotune.report.report import Report
from autotune.report.section import Code, Figures, Part, Picture, Section, Words
from autotune.report.style import STYLE

_ROWS = 40
# Characters that XML does not allow, not even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")


def to_html(report: Report) -> str:
    """Return the report as an HTML document."""
    title = f"{report.title}: autotune report"
    body = [_head(report), _contents(report.sections), *(_section(section) for section in report.sections)]
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en">',
            "<head>",
            '<meta charset="utf-8"/>',
            '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
            '<meta name="color-scheme" content="light dark"/>',
            f'<meta name="generator" content="autotune {_plain(__version__)}"/>',
            f"<title>{_plain(title)}</title>",
            f"<style>{STYLE}</style>",
            "</head>",
            "<body>",
            "<main>",
            *body,
            "</main>",
            "</body>",
            "</html>",
            "",
        ]
    )


def _head(report: Report) -> str:
    kind = report.headline.kind.replace(" ", "-")
    lines = ["<header>", f"<h1>{_plain(report.title)}</h1>"]
    if report.description:
        lines.append(f"<p>{_plain(report.description)}</p>")
    lines.append(f'<p class="verdict {kind}">{_plain(report.headline.sentence)}</p>')
    if report.headline.remarks:
        lines.append(
            f'<ul class="remarks">{"".join(f"<li>{_plain(remark)}</li>" for remark in report.headline.remarks)}</ul>'
        )
    figures = "".join(f"<div><dt>{_plain(what)}</dt><dd>{_plain(value)}</dd></div>" for what, value in report.figures)
    lines += [f'<dl class="figures">{figures}</dl>', "</header>"]
    return "\n".join(lines)


def _contents(sections: Sequence[Section]) -> str:
    items = "".join(f'<li><a href="#{section.key}">{_plain(section.title)}</a></li>' for section in sections)
    return f'<nav aria-label="Contents"><ul>{items}</ul></nav>'


def _section(section: Section) -> str:
    parts = "\n".join(_part(part) for part in section.parts)
    heading = f'<h2 id="{section.key}">{_plain(section.title)}</h2>'
    return f'<section aria-labelledby="{section.key}">\n{heading}\n{parts}\n</section>'


def _part(part: Part) -> str:
    match part:
        case Words():
            return f"<p>{_plain(part.text)}</p>"
        case Figures():
            return _table(part.table, part.caption)
        case Code():
            about = _plain(part.about)
            region = f'class="scroll" role="region" tabindex="0" aria-label="{about}"'
            code = f"<div {region}><pre><code>{_plain(part.text)}</code></pre></div>"
            return f'<p class="about">{about}</p>\n{code}'
        case Picture():
            return _picture(part.chart)


def _picture(chart: Chart) -> str:
    name, title, about = chart.name, _plain(chart.title), _plain(chart.description)
    drawn = to_svg(chart).replace("<svg ", f'<svg role="img" aria-label="{about}" ', 1)
    table = _table(chart.table, f"{chart.title}, in figures")
    region = f'class="scroll picture" role="region" tabindex="0" aria-label="{title}"'
    return "\n".join(
        [
            f'<figure id="picture-{name}">',
            f"<div {region}>{drawn}</div>",
            f"<figcaption><strong>{title}.</strong> {about}</figcaption>",
            f"<details><summary>{title}, in figures</summary>{table}</details>",
            "</figure>",
        ]
    )


def _table(table: Table, caption: str) -> str:
    rows = "".join(_row(row) for row in table.rows[:_ROWS])
    left = len(table.rows) - _ROWS
    more = f" ({left} more rows are left out; --format json has all)" if left > 0 else ""
    columns = "".join(f'<th scope="col">{_plain(column)}</th>' for column in table.columns)
    about = _plain(caption)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{about}"><table><caption>{about}{more}</caption>'
        f"<thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _row(row: Sequence[Cell]) -> str:
    first, *others = row
    cells = "".join(f"<td{_side(cell)}>{_plain(_cell(cell))}</td>" for cell in others)
    return f'<tr><th scope="row"{_side(first)}>{_plain(_cell(first))}</th>{cells}</tr>'


def _side(cell: Cell) -> str:
    return ' class="number"' if isinstance(cell, int | float) else ""


def _cell(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


def _plain(text: str) -> str:
    return html.escape(_NOT_XML.sub("�", text))
