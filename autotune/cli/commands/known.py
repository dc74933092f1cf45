"""`autotune known`: what is known to work here, for each program and machine."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.cli.tables import Column, fitted
from autotune.errors import CannotRunHereError
from autotune.formatting import shown
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.results.known import KnownConfiguration

_COLUMNS = (
    Column("program"),
    Column("machine"),
    Column("workload", 2),
    Column("over the default"),
    Column("value", 5),
    Column("runs", 1),
    Column("when", 4),
    Column("by", 3),
    Column("study", 6),
    Column("configuration"),
)


def known(
    program: Annotated[
        str | None, typer.Argument(metavar="[PROGRAM]", help="Only this program. Default: all programs.")
    ] = None,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Show what is known to work, for each program and machine.

    A row has the best configuration of all studies of the same program, machine and workload. A confirmed one counts
    before one that only looks faster.
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
