"""Commands that read a storage: list, show, trials, runs. `runs --prune` removes old folders, too."""

from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import output, print_json
from autotune.cli.options import DEFAULT_STORAGE, AsJson, Storage, StudyName
from autotune.cli.pruning import Pruning, pruned
from autotune.cli.removal import YesOption
from autotune.cli.tables import Column, fitted
from autotune.formatting import output_folder, quantity, shown
from autotune.storage.address import storage_url

if TYPE_CHECKING:
    from autotune.records.outcome import Outcome
    from autotune.records.study import Run, TrialRecord
    from autotune.results.summary import Summary
    from autotune.statistics.standings import Standings
    from autotune.storage.readable import ReadableStudy
    from objectives.base import Metric


_LIST = (
    Column("study"),
    Column("trials", 2),
    Column("failed", 1),
    Column("best", 4),
    Column("over the default", 3),
    Column("verdict"),
)


def list_studies(
    tags: Annotated[
        list[str] | None,
        typer.Option(
            "--tag", metavar="WORD", help="Only those with this tag (`autotune label`). Repeatable: with all."
        ),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Also those that are archived.")] = False,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """List the studies in a storage.

    Archived ones are left out: `autotune label` says which are.
    """
    from autotune.results.summary import summarise
    from autotune.storage.readable import labels_of
    from autotune.storage.stored_study import stored_studies

    stored = [(store, labels_of(store)) for store in stored_studies(storage_url(storage))]
    tagged = [(store, labels) for store, labels in stored if set(tags or ()) <= set(labels.tags)]
    shown_ones = [(summarise(store), labels) for store, labels in tagged if archived or not labels.archived]
    if as_json:
        print_json([summary.to_dict() | labels.to_dict() for summary, labels in shown_ones])
        return
    columns: tuple[Column, ...] = _LIST
    rows = [_list_row(summary) for summary, _ in shown_ones]
    if any(labels.tags for _, labels in shown_ones):
        columns = (*_LIST[:-1], Column("tags", 5), _LIST[-1])
        rows = [[*row[:-1], ", ".join(one.tags), row[-1]] for row, (_, one) in zip(rows, shown_ones, strict=True)]
    console = output()
    console.print(fitted(columns, rows, console))
    left_out = len(tagged) - len(shown_ones)
    if left_out:
        console.print(f"{left_out} archived {'study is' if left_out == 1 else 'studies are'} left out (--archived)")


def show(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
) -> None:
    """Show the state of a study: baseline, winner, verdict.

    It also shows the machine, the workload and the failures.
    """
    from autotune.results.summary import summarise
    from autotune.storage.stored_study import stored_study

    store = stored_study(storage_url(storage), name)
    summary, table = summarise(store), None
    if summary.decides:
        from autotune.decisions.table import table_of

        table = table_of(store)
    if as_json:
        decisions = {} if table is None else {"decisions": table.to_dict()}
        print_json(summary.to_dict() | decisions)
    else:
        output().print(summary.text(), markup=False)
        for sentence in () if table is None else table.sentences():
            output().print(f"the table: {sentence}", markup=False, soft_wrap=True)


def trials(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    as_json: AsJson = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> None:
    """Print every trial of a study."""
    from autotune.results.export import as_csv
    from autotune.results.trial_columns import row_of, trial_columns

    summary = _summary(name, storage)
    columns = trial_columns(summary.standings, summary.definition)
    rows = [row_of(trial, columns) for trial in summary.trials]
    if as_json:
        print_json(rows)
    elif csv:
        typer.echo(as_csv(rows), nl=False)
    else:
        _print_trials(summary)


def runs(
    name: StudyName,
    storage: Storage = DEFAULT_STORAGE,
    prune: Annotated[
        bool,
        typer.Option(
            "--prune", help="Remove the folders of runs that are older than [runs] keep_days in the study file."
        ),
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="AGE", help="With --prune: those that ended longer ago than this (30d)."),
    ] = None,
    whole: Annotated[
        bool, typer.Option("--all", help="With --prune: also those of the winner and of the default.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="With --prune: only say what would be removed.")] = False,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """Print every run of a study: where, when and how.

    With --json, each run has its whole command and environment. With --prune, old folders of runs are removed; what
    was measured stays in storage.
    """
    from autotune.records.series import SeriesKind
    from autotune.results.shared_cores import sharing_cores

    if prune:
        pruned(name, storage, Pruning(older_than, whole=whole, dry_run=dry_run, yes=yes), as_json=as_json)
        return
    given = {"--older-than": older_than, "--all": whole, "--dry-run": dry_run, "--yes": yes}
    for option in (option for option, value in given.items() if value):
        msg = "says which folders of runs are removed, and goes with --prune"
        raise typer.BadParameter(msg, param_hint=option)
    store = _store(name, storage)
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
        Column("round", 3),
        Column("block", 1),
        Column(f"{target.name} [{target.unit}]"),
        Column("core-s", 5),
        Column("started", 6),
        Column("host", 4),
        Column("load", 2),
        Column("cpus", 2),
        Column("taken", 2),
        Column("configuration"),
    )
    console = output()
    rows = [_run_row(run, target, shared=number in sharing) for number, run in enumerate(found)]
    console.print(fitted(columns, rows, console))
    if sharing:
        counting = sum(found[number].series.kind is not SeriesKind.ASIDE for number in sharing)
        counts = f"{counting} of them count nevertheless" if counting else "none of them counts (aside)"
        console.print(
            f"{len(sharing)} runs shared cores with another run of this study at the same time, and disturbed each "
            f"other; {counts}: ask for whole nodes (exclusive = true in the site file), or run one at a time "
            "(--workers 1)"
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
        _taken(outcome),
        shown(run.configuration),
    ]


def _taken(outcome: "Outcome") -> str:
    share = outcome.disturbance.taken_share
    return "" if share is None else f"{share:.0%}{' (disturbed)' if outcome.disturbed else ''}"


def _store(name: str, storage: str) -> "ReadableStudy":
    from autotune.storage.stored_study import stored_study

    return stored_study(storage_url(storage), name)


def _summary(name: str, storage: str) -> "Summary":
    from autotune.results.summary import summarise

    return summarise(_store(name, storage))


def _list_row(summary: "Summary") -> list[str]:
    from autotune.records.study import State

    standings, best = summary.standings, summary.best
    speed_up = summary.speed_up
    return [
        summary.name,
        str(summary.finished),
        str(sum(count for kind, count in standings.counts.items() if kind != State.CAPPED.value)),
        quantity(standings.value(best), standings.metric) if best else "",
        speed_up.text() if speed_up is not None else "",
        ("replay: " if summary.definition.replay else "") + (summary.verdict_sentence() or ""),
    ]


def _print_trials(summary: "Summary") -> None:
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
        note = f"{shown(trial.configuration)}{': ' if message else ''}{message}{f' ({folder})' if folder else ''}"
        costs = ("" if value is None else f"{value:.4g}" for value in (other.of(trial) for other in others))
        figures = (_value_of(trial, standings), *costs, speed_up.text() if speed_up is not None else "")
        rows.append((str(trial.number), state_of(trial), _runs_of(trial), *figures, note))
    best = next((index for index, trial in enumerate(summary.trials) if trial is summary.best), None)
    console = output()
    console.print(fitted(columns, rows, console, bold=best))


def _runs_of(trial: "TrialRecord") -> str:
    last = trial.runs[-1] if trial.runs else None
    return f"{last.steps} of {last.of} steps" if last and last.steps is not None else str(len(trial.runs))


def _value_of(trial: "TrialRecord", standings: "Standings") -> str:
    from autotune.records.study import State

    if trial.state is State.CAPPED:
        worse = "<" if standings.metric.direction == "maximize" else ">"
        return f"{worse} {standings.bound(trial):.4g}"
    if trial.state is State.PAUSED:
        return f"({trial.runs[-1].outcome.metrics[standings.metric.name]:.4g})"
    return f"{standings.value(trial):.4g}" if trial.complete else ""
