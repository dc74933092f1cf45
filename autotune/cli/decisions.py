"""What `autotune best` prints of a decision table, and the files that it writes for the program."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from autotune.cli.common import output, print_json
from autotune.cli.tables import Column, fitted
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.files import replace_file

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
    from autotune.storage.readable import ReadableStudy


def print_table(store: "ReadableStudy", rules: Path | None, *, as_json: bool) -> None:
    """Print the table of a study, or write the files of its program that say the same.

    Raises:
        AutotuneError: there is no table yet, or the program has no such files.
    """
    from autotune.decisions.table import table_of

    table = table_of(store)
    if table is None:
        msg = f"study {store.name!r} has too few measurements for a table yet"
        raise NothingWorkedError(msg)
    if rules is not None:
        for path in _written(store, table, rules):
            output().print(f"wrote {path}", markup=False, soft_wrap=True)
        left_out = sum(not decision.confirmed for decision in table.changed)
        if left_out:
            output().print(
                f"{left_out} cells keep the default there: what the model believes in was not compared with it in "
                "fresh runs (decisions.verdict_runs)"
            )
    elif as_json:
        print_json({"replay": store.definition.replay} | table.to_dict())
    else:
        _print(table, replay=store.definition.replay)


def check_table_options(given: Mapping[str, object], *, as_json: bool) -> None:
    """Refuse options that are for one winner, and several forms at once."""
    for option in ("--script", "--weights"):
        if given[option] is not None:
            msg = "is for studies with one winner, or a trade-off; a decision table has --rules and --json"
            raise typer.BadParameter(msg, param_hint=option)
    if given["--rules"] is not None and as_json:
        msg = "--rules writes files, --json prints the table: one of them"
        raise typer.BadParameter(msg, param_hint="--rules")


def _print(table: "DecisionTable", *, replay: bool) -> None:
    from autotune.decisions.rows import columns_of, rows_of
    from autotune.records.study import REPLAY_NOTICE

    console = output()
    if replay:
        console.print(REPLAY_NOTICE, markup=False)
    titles = columns_of(table)
    columns = [Column(title, weight) for title, weight in zip(titles, _weights(len(titles)), strict=True)]
    console.print(fitted(columns, rows_of(table), console))
    for sentence in table.sentences():
        console.print(sentence)


def _weights(columns: int) -> list[int]:
    """Return the weights of a table's columns: on a narrow terminal pairs, interval and ratio are left out last."""
    last = [1, 2, 3]
    return [0] * (columns - len(last)) + last


def _written(store: "ReadableStudy", table: "DecisionTable", target: Path) -> list[Path]:
    from objectives import registry
    from objectives.base import PlanError

    objective = store.definition.objective
    write = registry.rules(objective)
    if write is None:
        msg = f"objective {objective!r} has no files of rules; `autotune best {store.name} --json` prints the table"
        raise CannotRunHereError(msg)
    try:
        files = write(table.proven, store.definition.facts)
    except PlanError as error:
        raise CannotRunHereError(str(error)) from error
    single = len(files) == 1 and not target.is_dir()
    paths = {(target if single else target / name): text for name, text in files.items()}
    try:
        for path, text in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text, durable=False)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--rules") from error
    return list(paths)
