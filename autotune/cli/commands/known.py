"""`autotune known` and `studies`: what is known to work here, by program and machine, and by study that ships."""

from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.cli.tables import Column, fitted
from autotune.errors import CannotRunHereError
from autotune.formatting import shown
from autotune.storage.address import sqlite_path, storage_url

if TYPE_CHECKING:
    from autotune.results.came_to import CameTo
    from autotune.results.known import KnownConfiguration

_COLUMNS = (
    Column("program"),
    Column("machine"),
    Column("workload", 2),
    Column("over its default"),
    Column("value", 5),
    Column("runs", 1),
    Column("when", 4),
    Column("by", 3),
    Column("study", 6),
    Column("configuration"),
)
_SHIPPED_COLUMNS = (
    Column("study"),
    Column("over the default here"),
    Column("trials", 3),
    Column("runs", 4),
    Column("took", 1),
    Column("core-seconds", 2),
    Column("saved", 5),
    Column("what it is after"),
)


def known(
    program: Annotated[
        str | None, typer.Argument(metavar="[PROGRAM]", help="Only this program. Default: all programs.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Show what is known to work, for each program and machine.

    A row has the best configuration of all studies of the same program, in one version and with one input, machine,
    workload and metric. A confirmed one counts before one that only looks faster; of two confirmed ones the better
    value counts. A speed-up is over the default of its own study.
    """
    from autotune.results.known import known_configurations
    from autotune.storage.stored_study import stored_studies

    every = known_configurations(stored_studies(storage_url(storage)))
    rows = [row for row in every if program in {None, row.program}]
    if program is not None and not rows:
        from spaces.parameters.errors import did_you_mean

        names = sorted({row.program for row in every})
        there = ", ".join(names) or "nothing"
        msg = f"nothing is known of {program!r}{did_you_mean(program, names)}; there is: {there}"
        raise CannotRunHereError(msg)
    if as_json:
        print_json([row.to_dict() for row in rows])
        return
    if not rows:
        output().print("nothing is known yet: no study has a valid measurement", markup=False)
        return
    console = output()
    console.print(fitted(_COLUMNS, [_row(row) for row in rows], console))
    for doubt in dict.fromkeys(f"doubt about {row.study}: {row.doubt}" for row in rows if row.doubt):
        console.print(doubt, markup=False)
    console.print("autotune best STUDY --script sh makes a job script of one", markup=False)


def _row(known: "KnownConfiguration") -> list[str]:
    return [
        known.program,
        known.machine,
        known.workload.removeprefix(f"{known.program} "),
        known.sentence,
        known.figure,
        str(known.runs),
        known.when[:10],
        known.by,
        known.study,
        shown(known.configuration),
    ]


def studies(
    storage: Storage = DEFAULT_STORAGE,
    table: Annotated[bool, typer.Option("--table", help="As a table in Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the studies that ship, with what they came to here.

    That is the speed-up of the study of this name in the storage, with the interval of its verdict; its settled trials
    and all its runs; for how long it was at work; the core-seconds of its runs; and those that it saved by stopping
    runs that had lost, and by not repeating what was clear.
    """
    from autotune import studyfile

    shipped = studyfile.catalogue()
    here = _came_to(storage, shipped)
    described = {name: str(studyfile.read(path).get("description", "")) for name, path in shipped.items()}
    if as_json:
        print_json([{"study": name, **asdict(here[name]), "description": text} for name, text in described.items()])
        return
    texts = [[name, *_figures(here[name]), text] for name, text in described.items()]
    console = output()
    if table:
        heads = [column.title for column in _SHIPPED_COLUMNS]
        for line in (heads, ["---"] * len(heads), *texts):
            console.print(f"| {' | '.join(line)} |", markup=False, soft_wrap=True)
        return
    console.print(fitted(_SHIPPED_COLUMNS, texts, console))
    console.print("autotune study NAME tunes one; autotune check NAME says what it needs", markup=False)


def _figures(came: "CameTo") -> list[str]:
    from autotune.display.console import duration

    if not came.runs:
        return [came.over_the_default, "", "", "", "", ""]
    counts = [f"{came.trials}", f"{came.runs}", duration(came.took_s)]
    return [came.over_the_default, *counts, f"{came.spent_core_s:,.0f}", f"{came.saved_core_s:,.0f}"]


def _came_to(storage: str, shipped: Collection[str]) -> "dict[str, CameTo]":
    """Return what each study that ships came to in a storage, by name."""
    from autotune.results.came_to import NOT_TUNED, came_to
    from autotune.storage.stored_study import stored_studies

    url = storage_url(storage)
    path = sqlite_path(url)
    if path is not None and not path.exists():
        return dict.fromkeys(shipped, NOT_TUNED)  # what ships is listed before anything was tuned, too
    here = {store.name: came_to(store) for store in stored_studies(url) if store.name in shipped}
    return {name: here.get(name, NOT_TUNED) for name in shipped}
