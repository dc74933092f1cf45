"""Commands that read a storage: list, show, best, trials."""

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from autotune.cli.common import (
    DEFAULT_STORAGE,
    AsJson,
    Storage,
    StudyName,
    output,
    print_json,
    state_of,
    trial_row,
)
from autotune.display import shown
from autotune.errors import NothingWorkedError
from autotune.records import TrialRecord, baseline, incumbent, speed_up
from autotune.storage_url import storage_url
from autotune.summary import Summary, summarise


class ScriptFormat(StrEnum):
    """The job scripts that `best --script` writes."""

    PBS = "pbs"
    SLURM = "slurm"
    SH = "sh"


def list_studies(storage: Storage = DEFAULT_STORAGE, as_json: AsJson = False) -> None:
    """List the studies in a storage."""
    from autotune.search.store import StudyStore, study_names  # noqa: PLC0415  importing Optuna takes a while

    url = storage_url(storage)
    summaries = [summarise(store) for store in map(partial(StudyStore.read_if_ours, url), study_names(url)) if store]
    if as_json:
        print_json([summary.to_dict() for summary in summaries])
        return
    table = Table("study", "trials", "failed", "best", "speed-up", "verdict")
    for summary in summaries:
        table.add_row(*_list_row(summary))
    output().print(table)


def show(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Show how a study stands: machine, workload, baseline, winner, verdict, failures."""
    summary = _summary(name, storage)
    if as_json:
        print_json(summary.to_dict())
    else:
        output().print(summary.text(), markup=False)


def best(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    script: Annotated[ScriptFormat | None, typer.Option("--script", help="Print a job script of that kind.")] = None,
    target: Annotated[Path | None, typer.Option("--output", "-o", help="Write the script to a file instead.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print the winner, with its speed-up over the default configuration and how sure that is."""
    summary = _summary(name, storage)
    if summary.best is None:
        msg = f"study {name!r} has no valid measurement yet"
        raise NothingWorkedError(msg)
    if script is not None:
        _write(_script(summary, summary.best, script), target)
    elif as_json:
        print_json(summary.to_dict()["best"])
    else:
        output().print(summary.best_text(), markup=False)


def trials(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print every trial of a study."""
    summary = _summary(name, storage)
    rows = [trial_row(trial, summary.definition, summary.trials) for trial in summary.trials]
    if as_json:
        print_json(rows)
    elif csv:
        import pandas as pd  # noqa: PLC0415  only this output needs it, and importing it takes a while

        typer.echo(pd.DataFrame(rows).to_csv(index=False), nl=False)
    else:
        output().print(_trials_table(summary))


def _summary(name: str, storage: str) -> Summary:
    from autotune.search.store import StudyStore  # noqa: PLC0415  importing Optuna takes a while

    return summarise(StudyStore.read(storage_url(storage), name))


def _list_row(summary: Summary) -> list[str]:
    metric = summary.definition.target
    best, default = summary.best, baseline(summary.trials)
    gain = f"{speed_up(best.value(metric), default.value(metric), metric):.2f}x" if best and default else ""
    return [
        summary.name,
        str(summary.finished),
        str(sum(summary.failures.values())),
        f"{best.value(metric):g} {metric.unit}" if best else "",
        gain,
        summary.verdict_sentence() or "",
    ]


def _trials_table(summary: Summary) -> Table:
    metric = summary.definition.target
    table = Table("trial", "state", f"{metric.name} [{metric.unit}]".replace("[", r"\["), "speed-up", "configuration")
    default, winner = baseline(summary.trials), incumbent(summary.trials, metric)
    for trial in summary.trials:
        value = f"{trial.value(metric):g}" if trial.complete else ""
        gain = (
            f"{speed_up(trial.value(metric), default.value(metric), metric):.2f}" if trial.complete and default else ""
        )
        note = shown(trial.configuration)
        if trial.outcome is not None and trial.outcome.failure is not None:
            note = f"{note}: {trial.outcome.message}"
        style = "bold green" if winner and trial.number == winner.number else ""
        table.add_row(str(trial.number), state_of(trial), value, gain, note.replace("[", r"\["), style=style)
    return table


def _script(summary: Summary, trial: TrialRecord, form: ScriptFormat) -> str:
    from autotune.jobscript import FORMATS, JobScript  # noqa: PLC0415  needs what only this output needs
    from launchers.mpi import script_flavour  # noqa: PLC0415

    remarks = [f"autotune study {summary.name}, trial {trial.number} on {summary.definition.machine['host']}"]
    sentence = summary.verdict_sentence()
    if sentence:
        remarks.append(sentence)
    job: dict[str, Any] = dict(trial.job or {})
    return FORMATS[form.value](JobScript(f"autotune-{summary.name}", trial, script_flavour(job), remarks))


def _write(text: str, target: Path | None) -> None:
    if target is None:
        typer.echo(text, nl=False)
        return
    try:
        target.write_text(text, encoding="utf-8")
        target.chmod(0o755)
    except OSError as error:
        msg = f"cannot write {target}: {error.strerror}"
        raise typer.BadParameter(msg, param_hint="--output") from error
