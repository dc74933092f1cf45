"""`autotune export`: the measurements of a study, for any other program."""

from typing import Annotated

import typer

from autotune.cli.common import print_json
from autotune.cli.options import DEFAULT_STORAGE, Storage, StudyName
from autotune.errors import NothingWorkedError
from autotune.storage.address import storage_url


def export(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a list of rows.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV with a header; this is the default.")] = False,
) -> None:
    """Print every measurement of a study as CSV or JSON.

    Each run is a row, with its parameters, metrics, time, failure or bound.
    """
    from autotune.results.export import as_csv, exported
    from autotune.storage.study_store import StudyStore

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
