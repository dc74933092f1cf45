"""`autotune report` and `export`: a study as one document to read, print and pass on; its runs as a table."""

import json
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import errors, print_json
from autotune.cli.options import DEFAULT_STORAGE, Storage, StudyName
from autotune.errors import NothingWorkedError
from autotune.files import replace_file
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.report import Report


class ReportFormat(StrEnum):
    """The formats of a report."""

    HTML = "html"
    MD = "md"
    JSON = "json"


def report(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    form: Annotated[
        ReportFormat, typer.Option("--format", help="html: one file with pictures; md: Markdown; json: for programs.")
    ] = ReportFormat.HTML,
    target: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="The file to write; - prints the report. Default: STUDY.html for HTML; md and json are printed.",
        ),
    ] = None,
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FOLDER", help="Also draw the pictures as PNG files in this folder.")
    ] = None,
) -> None:
    """Write a report of a study: HTML, Markdown or JSON.

    It has the verdict, figures, pictures, the job script, and how the study was measured.
    """
    from autotune.report import report_of
    from autotune.storage.study_store import StudyStore

    document = report_of(StudyStore.read(storage_url(storage), name))
    drawn = _draw(document, png) if png is not None else {}
    if target is None and form is ReportFormat.HTML:
        target = Path(f"{name.replace(os.sep, '-')}.html")
    text = _text(document, form, drawn, target)
    if target is None or str(target) == "-":
        typer.echo(text, nl=False)
    else:
        _write(text, target)
        errors().print(f"report: {target}", markup=False)
    if png is not None:
        errors().print(f"pictures: {len(drawn)} in {png}", markup=False)


def _text(document: "Report", form: ReportFormat, drawn: dict[str, Path], target: Path | None) -> str:
    match form:
        case ReportFormat.JSON:
            return json.dumps(document.to_dict(), indent=2, default=str) + "\n"
        case ReportFormat.MD:
            from autotune.report.markdown import to_markdown

            # Beside a report in a file its pictures are found wherever both are moved to.
            start = Path.cwd() if target is None or str(target) == "-" else target.absolute().parent
            beside = {key: Path(os.path.relpath(path.absolute(), start)).as_posix() for key, path in drawn.items()}
            return to_markdown(document, beside)
        case ReportFormat.HTML:
            from autotune.report.page import to_html

            return to_html(document)


def _draw(document: "Report", folder: Path) -> dict[str, Path]:
    """Draw the pictures of a report; return their files by the charts' names.

    Raises:
        CannotRunHereError: a file cannot be written.
    """
    from autotune.pictures.files import save

    files = {chart.name: folder / f"{chart.name}.png" for chart in document.charts}
    for chart in document.charts:
        save(chart, files[chart.name], named_by="--png")
    return files


def _write(text: str, target: Path) -> None:
    """Write a file whole or not at all; if that fails, the older file stays.

    Raises:
        typer.BadParameter: it cannot be written.
    """
    try:
        if target.exists() and not target.is_file():
            # A pipe or a terminal cannot be replaced.
            target.write_text(text, encoding="utf-8")
        else:
            replace_file(target.resolve(), text)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror or error}; name another file, or - for the output"
        raise typer.BadParameter(msg, param_hint="--output") from error


class Form(StrEnum):
    """Formats of other tuners."""

    KERNEL_TUNER = "kernel-tuner"
    T4 = "t4"


def export(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a list of rows.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header; this is the default.")] = False,
    form: Annotated[
        Form | None,
        typer.Option("--format", help="Print it as other tuners exchange it: a cache of Kernel Tuner, or T4 results."),
    ] = None,
) -> None:
    """Print every measurement of a study as CSV or JSON.

    Each run is a row, with its parameters, metrics, time, failure or bound. With --format kernel-tuner it is a cache
    file for Kernel Tuner's simulation mode, with --format t4 results of the schema T4: a configuration is there once.
    """
    from autotune.results.export import as_csv, exported
    from autotune.storage.study_store import StudyStore

    if [as_json, csv, form is not None].count(True) > 1:
        msg = "give one of --csv, --json and --format"
        raise typer.BadParameter(msg)
    if form is not None:
        from autotune.results.tuner_files import check_exchangeable, kernel_tuner_cache, t4_results

        store = StudyStore.read(storage_url(storage), name)
        check_exchangeable(store)
        print_json(kernel_tuner_cache(store) if form is Form.KERNEL_TUNER else t4_results(store))
        return
    rows = exported(StudyStore.read(storage_url(storage), name))
    if not rows:
        msg = f"study {name!r} has no run yet"
        raise NothingWorkedError(msg)
    if as_json:
        print_json(rows)
    else:
        typer.echo(as_csv(rows), nl=False)
