"""`autotune export`: the measurements of a study, for any other program."""

from typing import Annotated

import typer

from autotune.cli.common import DEFAULT_STORAGE, Storage, StudyName, print_json
from autotune.errors import NothingWorkedError
from autotune.results.export import as_csv, exported
from autotune.storage.address import storage_url


def export(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a list of rows.")] = False,
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV with a header; so it is unless --json is given.")
    ] = False,
) -> None:
    """Print every measurement of a study: a row for each run, with its parameters, metrics, time, failure or bound."""
    from autotune.storage.study_store import StudyStore  # noqa: PLC0415  importing Optuna takes a while

    if as_json and csv:
        msg = "give either --csv or --json"
        raise typer.BadParameter(msg)
    rows = exported(StudyStore.read(storage_url(storage), name))
    if not rows:
        msg = f"study {name!r} has no run yet"
        raise NothingWorkedError(msg)
    if as_json:
        print_json(rows)
    else:
        typer.echo(as_csv(rows), nl=False)
