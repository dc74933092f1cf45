"""`autotune trials`: print the trials of a study, or its runs, as a table or for another program."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import echo, output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, ExistingStorage, StudyName
from autotune.cli.tables import Column, fit_table
from autotune.errors import NothingWorkedError
from autotune.formatting import configuration_text, output_folder
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.records.outcome import Outcome
    from autotune.records.study import Run, TrialRecord
    from autotune.results.summary import Summary
    from autotune.statistics.standings import Standings
    from autotune.storage.readable_study import ReadableStudy
    from objectives.base import Metric


class Format(StrEnum):
    """Formats for other programs."""

    CSV = "csv"
    KERNEL_TUNER = "kernel-tuner"
    T4 = "t4"


def trials(
    name: StudyName,
    runs: Annotated[bool, typer.Option("--runs", help="Print a row for each run.")] = False,
    form: Annotated[
        Format | None, typer.Option("--format", help="Print CSV, a Kernel Tuner cache, or T4 results.")
    ] = None,
    storage: ExistingStorage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Print the trials or the runs of a study.

    With --runs --json, each run has its whole command and environment.
    """
    from autotune.storage.stored_study import open_stored_study

    if form is not None and as_json:
        msg = f"{form} excludes --json: give one of the two"
        raise typer.BadParameter(msg, param_hint="--format")
    if runs and form in {Format.KERNEL_TUNER, Format.T4}:
        msg = f"{form} has all runs of each configuration already: leave --runs out"
        raise typer.BadParameter(msg, param_hint="--runs")
    store = open_stored_study(storage_url(storage), name)
    match form:
        case Format.KERNEL_TUNER | Format.T4:
            _print_tuner_file(storage, name, form)
        case Format.CSV if runs:
            _print_runs_csv(storage, name)
        case _ if runs:
            _print_runs(store, as_json=as_json)
        case _:
            _print_trials(store, as_json=as_json, csv=form is Format.CSV)


def _print_tuner_file(storage: str, name: str, form: Format) -> None:
    from autotune.results.tuner_files import check_exchangeable, kernel_tuner_cache, t4_results
    from autotune.storage.study_store import StudyStore

    store = StudyStore.read(storage_url(storage), name)
    check_exchangeable(store)
    print_json(kernel_tuner_cache(store) if form is Format.KERNEL_TUNER else t4_results(store))


def _print_runs_csv(storage: str, name: str) -> None:
    from autotune.results.export import as_csv, run_rows
    from autotune.storage.study_store import StudyStore

    rows = run_rows(StudyStore.read(storage_url(storage), name))
    if not rows:
        msg = f"study {name!r} has no run yet"
        raise NothingWorkedError(msg)
    echo(as_csv(rows))


def _print_runs(store: "ReadableStudy", *, as_json: bool) -> None:
    from autotune.records.series import SeriesKind
    from autotune.results.disturbed_runs import sharing_cores

    target = store.definition.target
    found = store.runs()
    sharing = sharing_cores(dict(enumerate(found)))
    if as_json:
        print_json(
            [
                run.to_dict()
                | {
                    "trial": run.trial,
                    "series": str(run.series),
                    "round": run.round,
                    "shared_cores": number in sharing,
                    "disturbed": run.outcome.disturbed,
                }
                for number, run in enumerate(found)
            ]
        )
        return
    columns = (
        Column("trial"),
        Column("for", 7),
        Column("round", 3, "the round of a comparison"),
        Column("period", 1, "the number of the time between two runs of the default"),
        Column(f"{target.name} [{target.unit}]"),
        Column("core-s", 5),
        Column("started", 6),
        Column("host", 4),
        Column("load", 2),
        Column("cpus", 2),
        Column("taken", 2, "the share of the run's time that other processes took"),
        Column("configuration"),
    )
    console = output()
    rows = [_run_row(run, target, shared=number in sharing) for number, run in enumerate(found)]
    console.print(fit_table(columns, rows, console))
    if sharing:
        counting = sum(found[number].series.kind is not SeriesKind.ASIDE for number in sharing)
        counts = f"{counting} of them still count" if counting else "all were set aside"
        console.print(
            f"{len(sharing)} runs shared cores with another run of this study and disturbed each other; {counts}: "
            "request whole nodes (exclusive = true in the site file), or run one at a time (--workers 1)"
        )


def _run_row(run: "Run", target: "Metric", *, shared: bool) -> list[str]:
    outcome = run.outcome
    value = f"{outcome.metrics[target.name]:g}" if outcome.complete else (outcome.failure or "capped")
    load = outcome.conditions.get("load_1m")
    return [
        "" if run.trial is None else str(run.trial),
        run.series.kind.label,
        "" if run.series.is_tuning else str(run.round),
        str(run.block) if run.series.is_tuning else "",
        value,
        f"{run.core_s:.1f}",
        run.started[:19],
        run.host,
        f"{load:.2f}" if isinstance(load, float) else "",
        f"{outcome.conditions.get('cpus', '')}{' (shared)' if shared else ''}",
        _taken_text(outcome),
        configuration_text(run.configuration),
    ]


def _taken_text(outcome: "Outcome") -> str:
    share = outcome.disturbance.taken_share
    return "" if share is None else f"{share:.0%}{' (disturbed)' if outcome.disturbed else ''}"


def _print_trials(store: "ReadableStudy", *, as_json: bool, csv: bool) -> None:
    from autotune.results.export import as_csv
    from autotune.results.summary import summarise
    from autotune.results.trial_columns import row_of, trial_columns

    summary = summarise(store)
    if not (as_json or csv):
        _print_table(summary)
        return
    columns = trial_columns(summary.standings, summary.definition)
    rows = [row_of(trial, columns) for trial in summary.trials]
    if as_json:
        print_json(rows)
    else:
        echo(as_csv(rows))


def _print_table(summary: "Summary") -> None:
    from autotune.records.limit import breaks
    from autotune.results.pareto import tradeoff_metrics
    from autotune.results.trial_columns import metric_column, state_of
    from autotune.statistics.ratio_words import ratio_title

    standings = summary.standings
    metric, others = standings.metric, [*map(metric_column, tradeoff_metrics(summary.definition)[1:])]
    columns = (
        Column("trial"),
        Column("state", 3),
        Column("runs", 1),
        Column(metric_column(metric).title),
        *(Column(other.title) for other in others),
        Column(ratio_title(metric), 2),
        Column("configuration"),
    )
    rows = []
    for trial in summary.trials:
        speed_up = standings.speed_up(trial)
        message = trial.message or breaks(standings.limits.breaches(trial.number))
        folder = output_folder(trial.job) if trial.failure is not None else ""
        note = configuration_text(trial.configuration)
        note += f"{': ' if message else ''}{message}{f' ({folder})' if folder else ''}"
        costs = ("" if value is None else f"{value:.4g}" for value in (other.of(trial) for other in others))
        figures = (_value_of(trial, standings), *costs, speed_up.text() if speed_up is not None else "")
        rows.append((str(trial.number), state_of(trial), _runs_of(trial), *figures, note))
    best = next((index for index, trial in enumerate(summary.trials) if trial is summary.best), None)
    console = output()
    console.print(fit_table(columns, rows, console, bold=best))


def _runs_of(trial: "TrialRecord") -> str:
    last = trial.runs[-1] if trial.runs else None
    return f"{last.steps} of {last.of} steps" if last and last.steps is not None else str(len(trial.runs))


def _value_of(trial: "TrialRecord", standings: "Standings") -> str:
    from autotune.records.study import State

    if trial.state is State.CAPPED:
        worse = "<" if standings.metric.direction == "maximize" else ">"
        return f"{worse} {standings.bound_of(trial):.4g}"
    if trial.state is State.PAUSED:
        return f"({trial.runs[-1].outcome.metrics[standings.metric.name]:.4g})"
    return f"{standings.value(trial):.4g}" if trial.complete else ""
