"""`autotune studies`: list the studies that ship with their results here, or the best configuration of each program."""

from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage
from autotune.cli.tables import Column, fit_table
from autotune.formatting import configuration_text
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.results.known_configurations import KnownConfiguration
    from autotune.results.tuning_result import TuningResult

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


def studies(
    known: Annotated[
        bool, typer.Option("--known", help="List the best configuration of each program and machine.")
    ] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table as Markdown.")] = False,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """List the studies that ship, and their results here.

    `autotune storage list` lists the studies of a storage.
    """
    if markdown and as_json:
        msg = "excludes --json: give one of the two"
        raise typer.BadParameter(msg, param_hint="--markdown")
    (_print_known if known else _print_shipped)(storage, markdown=markdown, as_json=as_json)


def _print_known(storage: str, *, markdown: bool, as_json: bool) -> None:
    from autotune.results.known_configurations import known_configurations
    from autotune.storage.stored_study import open_stored_studies

    rows = known_configurations(open_stored_studies(storage_url(storage)))
    if as_json:
        print_json([row.to_dict() for row in rows])
        return
    if not rows:
        output().print("nothing is known yet: no study has a valid measurement")
        return
    _print(_COLUMNS, [_row(row) for row in rows], markdown=markdown)
    if markdown:
        return
    for doubt in dict.fromkeys(f"doubt about {row.study}: {row.doubt}" for row in rows if row.doubt):
        output().print(doubt)
    output().print("autotune best STUDY --script sh prints a job script")


def _print_shipped(storage: str, *, markdown: bool, as_json: bool) -> None:
    from autotune import studyfile

    shipped = studyfile.catalogue()
    here = _results_here(storage, shipped)
    described = {name: str(studyfile.read(path).get("description", "")) for name, path in shipped.items()}
    if as_json:
        print_json([{"study": name, **asdict(here[name]), "description": text} for name, text in described.items()])
        return
    rows = [[name, *_figures(here[name]), text] for name, text in described.items()]
    _print(_SHIPPED_COLUMNS, rows, markdown=markdown)
    if not markdown:
        output().print("autotune study NAME tunes a study; autotune check NAME lists what it needs")


def _print(columns: Sequence[Column], rows: Sequence[Sequence[str]], *, markdown: bool) -> None:
    console = output()
    if not markdown:
        console.print(fit_table(columns, rows, console))
        return
    heads = [column.title for column in columns]
    for line in (heads, ["---"] * len(heads), *rows):
        console.print(f"| {' | '.join(line)} |", soft_wrap=True)


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
        configuration_text(known.configuration),
    ]


def _figures(came: "TuningResult") -> list[str]:
    from autotune.display.console import duration

    if not came.runs:
        return [came.over_the_default, "", "", "", "", ""]
    counts = [f"{came.trials}", f"{came.runs}", duration(came.took_s)]
    return [came.over_the_default, *counts, f"{came.spent_core_s:,.0f}", f"{came.saved_core_s:,.0f}"]


def _results_here(storage: str, shipped: Collection[str]) -> "dict[str, TuningResult]":
    """Return the results in a storage of each study that ships, by name."""
    from autotune.results.tuning_result import NOT_TUNED, tuning_result_of
    from autotune.storage.damage import left_out_if_damaged
    from autotune.storage.stored_study import find_stored_studies

    here = {}
    for store in find_stored_studies(storage_url(storage)):  # a missing storage is no error: nothing was tuned yet
        if store.name in shipped:
            with left_out_if_damaged(store.name):
                here[store.name] = tuning_result_of(store)
    return {name: here.get(name, NOT_TUNED) for name in shipped}
