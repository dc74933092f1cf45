"""The command that prints the winner of a study, or a job script of it."""

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.choices import SCRIPT_FORM
from autotune.cli.common import check_has_script, check_one_form, output, print_json, write_script
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage, StudyName, WeightsOption
from autotune.cli.where import SiteOption
from autotune.errors import NothingFeasibleError, NothingWorkedError
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.results.summary import Summary
    from autotune.storage.readable import ReadableStudy

# What JSON has of the study beside its best trial.
_KEPT = ("replay", "speed_up", "verdict", "front", "point", "inputs", "simplified", "simplified_speed_up", "outlook")


def best(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    script: Annotated[
        str | None, typer.Option("--script", help="Print a job script of this kind.", **SCRIPT_FORM)
    ] = None,
    weights: WeightsOption = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            metavar="FILE|FOLDER",
            help="Of a decision table: write the files from which the program reads it; several into a folder.",
        ),
    ] = None,
    site: SiteOption = None,
    account: Annotated[
        str | None, typer.Option("--account", metavar="NAME", help="The project that the job script charges.")
    ] = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", help="Write the script to a file instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the winner, its speed-up and its uncertainty.

    The speed-up is that over the default configuration. --script makes a job script of what is to be used. Of a
    trade-off there is a front, and --weights chooses from it. Of a decision table there is a setting for each cell, and
    --rules writes it for the program.
    """
    check_one_form(script, as_json=as_json)
    check_has_script(script, target, {"--site": site, "--account": account})
    from autotune.cli.decisions import check_table_options, print_table
    from autotune.results.preference import Preference
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study
    from autotune.studyfile.stored import study_of

    store = stored_study(storage_url(storage), name)
    if study_of(store.definition).decisions is not None:
        check_table_options({"--script": script, "--weights": weights, "--rules": rules}, as_json=as_json)
        print_table(store, rules, as_json=as_json)
        return
    if rules is not None:
        msg = f"study {name!r} has no [decisions]: it has one winner; leave it out"
        raise typer.BadParameter(msg, param_hint="--rules")
    summary = summarise(store)
    if summary.nearest is not None:
        raise NothingFeasibleError(summary.best_text())
    if summary.best is None:
        msg = f"study {name!r} has no valid measurement yet"
        raise NothingWorkedError(msg)
    if weights is not None:
        summary = replace(summary, preference=Preference.stated(summary.front, weights, name))
    if script is not None:
        from autotune.batch.winner_script import script_of, site_of

        at = site_of(summary.study, script, site, account)
        write_script(script_of(store, summary, script, at), target)
    elif as_json:
        found = summary.to_dict()
        kept = {key: found[key] for key in _KEPT}
        preference = None if summary.preference is None else summary.preference.to_dict()
        print_json(found["best"] | kept | {"weights": preference, "to_use": _to_use(store, summary)})
    else:
        output().print(summary.best_text(), markup=False)
        for line in _lines_to_use(store, summary):
            output().print(line, markup=False, soft_wrap=True)


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
    """Return the configuration to use, and the command that runs it; `trial` is None for a simplified one.

    `setup` are lines of shell that come before the command: they make its software available. None for a trade-off of
    which no point was asked for.
    """
    from autotune.batch.winner_script import command_to_use, setup_to_use

    if summary.front is not None and summary.preference is None:
        return None
    return {
        "trial": None if summary.simplified or summary.to_use is None else summary.to_use.number,
        "configuration": dict(summary.configuration or {}),
        "command": command_to_use(store, summary),
        "setup": setup_to_use(store, summary),
    }
