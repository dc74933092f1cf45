"""`autotune best`: print a study's winner and verdict, its job script, or its decision table."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.common import check_has_script, check_one_form, output, print_json, write_script
from autotune.cli.options import DEFAULT_STORAGE, AsJson, ExistingStorage, ScriptFileOption, StudyName, WeightsOption
from autotune.cli.placement import SiteOption
from autotune.cli.tables import Column, fit_table
from autotune.errors import CannotRunHereError, NothingFeasibleError, NothingWorkedError
from autotune.files import replace_file
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
    from autotune.results.summary import Summary
    from autotune.storage.readable_study import ReadableStudy


def best(
    name: StudyName,
    storage: ExistingStorage = DEFAULT_STORAGE,
    weights: WeightsOption = None,
    script: Annotated[
        str | None, typer.Option("--script", help="Print a job script of the winner.", **SCRIPT_FORM)
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option("--rules", metavar="FILE|FOLDER", help="Write a decision table as the program's rule files."),
    ] = None,
    site: SiteOption = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="NAME", help="The project that the job is charged to.")
    ] = None,
    target: ScriptFileOption = None,
    as_json: AsJson = False,
) -> None:
    """Print the winner, its speed-up and how sure it is.

    It also prints the baseline, the machine, the failures and what the study cost.
    """
    check_one_form(script, as_json=as_json)
    check_has_script(script, target, {"--site": site, "--account": account})
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import open_stored_study

    store = open_stored_study(storage_url(storage), name)
    summary = summarise(store)
    if summary.has_decision_table:
        _check_table_options({"--script": script, "--weights": weights, "--rules": rules}, as_json=as_json)
        _print_or_write_table(store, summary, rules, as_json=as_json)
        return
    if rules is not None:
        msg = f"study {name!r} has one winner and no [decisions]: leave this option out"
        raise typer.BadParameter(msg, param_hint="--rules")
    works = summary.best is not None and summary.nearest is None
    if weights is not None and works:
        summary = summary.weighted(weights)
    if script is None and (as_json or summary.best is not None or summary.nearest is not None):
        _print_state(store, summary, as_json=as_json)
    if summary.nearest is not None:
        raise NothingFeasibleError(summary.verdict_sentence() or "no configuration keeps the limits")
    if summary.best is None:
        raise NothingWorkedError(_why_nothing_worked(summary))
    if script is not None:
        from autotune.batch.winner_script import script_of, site_of

        at = site_of(summary.study, script, site, account)
        write_script(script_of(store, summary, script, at), target)


def _print_state(store: "ReadableStudy", summary: "Summary", *, as_json: bool) -> None:
    if as_json:
        preference = None if summary.preference is None else summary.preference.to_dict()
        print_json(summary.to_dict() | {"weights": preference, "to_use": _to_use(store, summary)})
        return
    output().print(summary.text())
    for line in _lines_to_use(store, summary):
        output().print(line, soft_wrap=True)


def _why_nothing_worked(summary: "Summary") -> str:
    """Return the failure of the default, or else of the first failed trial."""
    default = summary.standings.default
    failed = [trial for trial in summary.trials if trial.failure is not None]
    if not failed:
        return f"study {summary.name!r} has no valid measurement yet"
    first = default if default in failed else failed[0]
    which = f"trial {first.number}{' (the default)' if first is default else ''}"
    return f"{which} failed: {first.message}; autotune trials {summary.name} shows all"


def _lines_to_use(store: "ReadableStudy", summary: "Summary") -> list[str]:
    used = _to_use(store, summary)
    if used is None or used["command"] is None:
        return []
    which = f"the configuration of trial {used['trial']}"
    if summary.simplified:
        which = "the simplified configuration"
    elif summary.to_use is summary.standings.baseline:
        which = "the default configuration"
    command = used["command"]
    on_inputs = command if isinstance(command, dict) else {"": command}
    return [
        f"to use: {which}{f', on input {one}' if one else ''}: {' && '.join([*used['setup'], shlex.join(argv)])}"
        for one, argv in on_inputs.items()
    ]


def _to_use(store: "ReadableStudy", summary: "Summary") -> dict[str, Any] | None:
    """Return the configuration to use, as JSON-able values; None without a winner, or without a point of a trade-off.

    Returns:
        `trial`: its number, None for a simplified configuration.
        `configuration`: its values by parameter.
        `command`: the words of the command that runs it.
        `setup`: shell lines that make its software available before the command.
    """
    from autotune.batch.winner_script import command_to_use, setup_to_use

    if summary.to_use is None or summary.nearest is not None:
        return None
    return {
        "trial": None if summary.simplified else summary.to_use.number,
        "configuration": dict(summary.configuration or {}),
        "command": command_to_use(store, summary),
        "setup": setup_to_use(store, summary),
    }


def _print_or_write_table(store: "ReadableStudy", summary: "Summary", rules: Path | None, *, as_json: bool) -> None:
    """Print the decision table of a study, or write the rule files of its program.

    Raises:
        AutotuneError: The study has no table yet, or the program has no rule files.
    """
    from autotune.decisions.table import table_of

    table = table_of(store)
    if rules is None and as_json:
        print_json(summary.to_dict() | {"decisions": None if table is None else table.to_dict()})
    elif rules is None:
        output().print(summary.text())
        if table is not None:
            _print_table(table)
    if table is None:
        msg = f"study {store.name!r} has too few measurements for a table yet"
        raise NothingWorkedError(msg)
    if rules is not None:
        for path in _write_rules(store, table, rules):
            output().print(f"wrote {path}", soft_wrap=True)
        left_out = sum(not decision.is_confirmed for decision in table.changed)
        if left_out:
            output().print(
                f"{left_out} cells keep the default in these files: the model's choice was not compared with it in "
                "fresh runs (decisions.verdict_runs)"
            )


def _check_table_options(given: Mapping[str, object], *, as_json: bool) -> None:
    """Refuse options that a decision table does not have, and `--rules` together with `--json`."""
    for option in ("--script", "--weights"):
        if given[option] is not None:
            msg = "is for studies with one winner or a trade-off; use --rules or --json for a decision table"
            raise typer.BadParameter(msg, param_hint=option)
    if given["--rules"] is not None and as_json:
        msg = "--rules writes files, --json prints the table: give one of the two"
        raise typer.BadParameter(msg, param_hint="--rules")


def _print_table(table: "DecisionTable") -> None:
    from autotune.decisions.ranges import columns_of, rows_of

    console = output()
    titles = columns_of(table)
    # A narrow terminal leaves out only the last three: first the pairs, then the interval, then the ratio.
    weights = [*[0] * (len(titles) - 3), 1, 2, 3]
    columns = [Column(title, weight) for title, weight in zip(titles, weights, strict=True)]
    console.print(fit_table(columns, rows_of(table), console))
    for sentence in table.sentences():
        console.print(sentence)


def _write_rules(store: "ReadableStudy", table: "DecisionTable", target: Path) -> list[Path]:
    from objectives import registry
    from objectives.base import PlanError

    objective = store.definition.objective
    write = registry.rules(objective)
    if write is None:
        msg = f"objective {objective!r} has no rule files; `autotune best {store.name} --json` prints the table"
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
