"""`autotune report`, `picture` and `importance`: a report of studies, a picture, and the importance of parameters."""

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import echo, errors, names_over, output, print_json
from autotune.cli.completion import reference_files
from autotune.cli.options import DEFAULT_STORAGE, AsJson, ExistingStorage, StudyName, StudyNames, check_drawable
from autotune.cli.packages import require_modules
from autotune.cli.tables import Column, fit_table
from autotune.errors import NothingWorkedError
from autotune.files import write_output
from autotune.formatting import as_sentence
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.pictures.chart import Chart
    from autotune.report import Report

_OVER = "Draw over this parameter; a second one gives a line for each of its values."


class ReportFormat(StrEnum):
    """The formats of a report."""

    HTML = "html"
    MD = "md"
    JSON = "json"


def report(
    names: StudyNames,
    storage: ExistingStorage = DEFAULT_STORAGE,
    form: Annotated[ReportFormat, typer.Option("--format", help="Format of the report.")] = ReportFormat.HTML,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; - prints the report. Default: STUDY.html, or studies.html.",
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Draw the pictures as PNG files in this folder.")
    ] = None,
    pdf: Annotated[
        Path | None,
        typer.Option("--pdf", metavar="FILE", help="Write a PDF file with Chromium or Chrome."),
    ] = None,
    references: Annotated[
        str | None,
        typer.Option(
            "--references",
            metavar="NAME",
            help="Of several studies: reference figures for a score, that ship or in a file (./mine.toml).",
            autocompletion=reference_files,
        ),
    ] = None,
) -> None:
    """Write a report of studies: HTML, Markdown, JSON or PDF.

    Of one study it has the verdict, figures, pictures, the job script, and how the study was measured. Of several it
    has one table with the speed-up of each, and their geometric mean.
    """
    if len(names) == 1 and references is not None:
        msg = "is for a report of several studies: name two or more studies, or leave it out"
        raise typer.BadParameter(msg, param_hint="--references")
    require_modules("matplotlib", "sklearn")
    document = _document(names, storage, references)
    if png is not None and not document.charts:
        msg = "a report of several studies has no pictures: make a report of each study"
        raise typer.BadParameter(msg, param_hint="--png")
    drawn = _draw(document, png) if png is not None else {}
    if pdf is not None:
        _write_pdf(document, pdf)
    if pdf is None or target is not None or form is not ReportFormat.HTML:
        _write_report(document, form, drawn, target)
    if png is not None:
        errors().print(f"pictures: {len(drawn)} in {png}")


def picture(
    name: StudyName,
    over: Annotated[str | None, typer.Option("--over", metavar="NAME[,NAME]", help=_OVER)] = None,
    of: Annotated[
        str | None,
        typer.Option("--of", metavar="NAME", help="A metric, or a part that the program times."),
    ] = None,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File for the picture. Default: STUDY-OF-OVER.png.",
            callback=check_drawable,
        ),
    ] = None,
    storage: ExistingStorage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Draw a metric over parameters, or a decision table.

    Each point is the best trial with that value. Without --over it draws the table of a study with [decisions].
    """
    from autotune.pictures.files import save

    if not as_json:
        require_modules("matplotlib")
    chart, named = _chart(name, storage, over, of)
    if as_json:
        print_json({"description": chart.description, "columns": chart.table.columns, "rows": chart.table.rows})
    else:
        columns = [Column(title) for title in chart.table.columns]
        rows = [["" if cell is None else str(cell) for cell in row] for row in chart.table.rows]
        output().print(fit_table(columns, rows, output()))
        output().print(chart.description, soft_wrap=True)
    if target is not None or not as_json:
        path = target or Path("-".join([name, *named]).replace(os.sep, "-").replace(" ", "-") + ".png")
        save(chart, path, named_by="--output")
        errors().print(f"picture: {path}")


def importance(name: StudyName, storage: ExistingStorage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """Print how much each parameter matters.

    Prints what share of the differences between the trials each parameter explains, by Optuna's fANOVA. `autotune
    report` and the page draw it.
    """
    require_modules("sklearn")
    from autotune.results.importance import LEAST_VALUES, importance_of
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import open_stored_study

    summary = summarise(open_stored_study(storage_url(storage), name))
    found = importance_of(summary)
    if found is None:
        why = (
            "its trials do not compete"
            if summary.has_decision_table
            else f"it takes {LEAST_VALUES} trials with a value, and a parameter that varies"
        )
        msg = f"study {name!r} has no importance of parameters: {why}"
        raise NothingWorkedError(msg)
    if as_json:
        print_json(found.to_dict())
        return
    rows = [[one.name, f"{one.share:.1%}"] for one in found.parameters]
    output().print(fit_table((Column("parameter"), Column("share", 0)), rows, output()))
    for sentence in found.sentences():
        output().print(as_sentence(sentence), soft_wrap=True)


def _document(names: list[str], storage: str, references: str | None) -> "Report":
    """Return the report of a study, or of several.

    Raises:
        typer.BadParameter: A study is named twice, or no study has a reference.
        AutotuneError: A study or the references cannot be read, or do not fit together.
    """
    from autotune.report import report_of, report_of_several
    from autotune.storage.study_store import StudyStore
    from autotune.studyfile.references import load_references

    if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        msg = f"{', '.join(twice)}: named more than once; name each study once"
        raise typer.BadParameter(msg, param_hint="NAMES")
    figures = None if references is None else load_references(references)
    if figures is not None and not figures.references.keys() & set(names):
        msg = f"{references} has no figure of {', '.join(names)}; it has those of {', '.join(figures.references)}"
        raise typer.BadParameter(msg, param_hint="--references")
    stores = [StudyStore.read(storage_url(storage), name) for name in names]
    return report_of(stores[0]) if len(stores) == 1 else report_of_several(stores, figures)


def _write_report(document: "Report", form: ReportFormat, drawn: dict[str, Path], target: Path | None) -> None:
    """Write a report to its file, or to standard output."""
    if target is None and form is ReportFormat.HTML:
        target = Path(f"{document.file_name.replace(os.sep, '-')}.html")
    text = _text(document, form, drawn, target)
    if target is None or str(target) == "-":
        echo(text)
    else:
        _replace_file(text, target)
        errors().print(f"report: {target}")


def _write_pdf(document: "Report", target: Path) -> None:
    """Write a report as PDF.

    Raises:
        typer.BadParameter: The file cannot be written.
        CannotRunHereError: No browser could print it.
    """
    from autotune.report.page import to_html
    from autotune.report.printing import to_pdf

    printed = to_pdf(to_html(document))
    try:
        target.write_bytes(printed)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}; name another file"
        raise typer.BadParameter(msg, param_hint="--pdf") from error
    errors().print(f"report: {target}")


def _chart(name: str, storage: str, over: str | None, of: str | None) -> "tuple[Chart, list[str]]":
    """Return the picture, and the words that name its file.

    Raises:
        AutotuneError: The study has nothing to draw, or no such parameter or metric.
        typer.BadParameter: `--over` is missing or does not fit the study.
    """
    from autotune.pictures.over_parameter import draw_over
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import open_stored_study

    store = open_stored_study(storage_url(storage), name)
    summary = summarise(store)
    if over is None:
        if not summary.has_decision_table:
            msg = f"study {name!r} has no decision table to draw; for a picture over a parameter, name it with --over"
            raise typer.BadParameter(msg, param_hint="--over")
        if of is not None:
            msg = "is for a picture over a parameter: give --over too, or leave it out for the decision table"
            raise typer.BadParameter(msg, param_hint="--of")
        from autotune.decisions.table import table_of
        from autotune.pictures.decisions import decisions

        table = table_of(store)
        chart = None if table is None else decisions(table)
        if chart is None:
            msg = f"study {name!r} has too few measurements for a table yet"
            raise NothingWorkedError(msg)
        return chart, ["decisions"]
    names = names_over(over)
    what = of or summary.standings.metric.name
    chart = draw_over(summary, what, *names)
    if chart is None:
        msg = f"study {name!r} has no valid trial with {what} and a value of {names[0]}"
        raise NothingWorkedError(msg)
    return chart, [what, *names]


def _text(document: "Report", form: ReportFormat, drawn: dict[str, Path], target: Path | None) -> str:
    match form:
        case ReportFormat.JSON:
            return json.dumps(document.to_dict(), indent=2, default=str) + "\n"
        case ReportFormat.MD:
            from autotune.report.markdown import to_markdown

            # Link pictures relative to the report, so that both can be moved together.
            start = Path.cwd() if target is None or str(target) == "-" else target.absolute().parent
            beside = {key: Path(os.path.relpath(path.absolute(), start)).as_posix() for key, path in drawn.items()}
            return to_markdown(document, beside)
        case ReportFormat.HTML:
            from autotune.report.page import to_html

            return to_html(document)


def _draw(document: "Report", folder: Path) -> dict[str, Path]:
    """Draw the pictures of a report; return their files by the charts' names.

    Raises:
        CannotRunHereError: A file cannot be written.
    """
    from autotune.pictures.files import save

    files = {chart.name: folder / f"{chart.name}.png" for chart in document.charts}
    for chart in document.charts:
        save(chart, files[chart.name], named_by="--png")
    return files


def _replace_file(text: str, target: Path) -> None:
    """Write a file whole or not at all; if writing fails, the older file stays.

    Raises:
        typer.BadParameter: The file cannot be written.
    """
    try:
        write_output(target, text)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}; name another file, or - for the output"
        raise typer.BadParameter(msg, param_hint="--output") from error
