"""Retention: which run folders are older than a study keeps them, and which stay however old they are."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.coordination.upkeep import Removable, find_removable
from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord
from autotune.results.summary import Summary, summarise
from autotune.scheduling.checkpoints import Checkpoints
from autotune.storage.study_store import StudyStore
from autotune.studyfile.definition import Definition
from launchers.supervisor import STATUS_FILE
from spaces import Configuration, Value

_DAY_S = 86400.0


def retention_s(definition: Definition) -> float | None:
    """Return for how many seconds a study keeps its run folders, as its study file says; None: for ever."""
    days = definition.study_file.runs.keep_days
    return None if days is None else days * _DAY_S


def find_outdated_folders(store: StudyStore, older_than_s: float, *, whole: bool = False) -> Removable:
    """Return the folders of runs that ended more than `older_than_s` seconds ago.

    The folders of runs in flight always stay, and so do those of trials that resume from a checkpoint. Unless `whole`
    is set, these stay too: failed runs, runs of the winner and of the default, and the pairs behind a decision table.
    """
    rule = _Rule(
        time.time() - older_than_s,
        () if whole else tuple(map(dict, _noteworthy_configurations(summarise(store)))),
        frozenset() if whole else frozenset({SeriesKind.CELL}),
        not whole,
        _folders_of_leased_runs(store),
        _trials_with_checkpoint(store.trials(), store.mark),
    )
    return find_removable(store, rule.stays)


@dataclass(frozen=True)
class _Rule:
    """Which folders stay.

    Attributes:
        since: Runs that ended at this time (s since the epoch) or later.
        configurations: Runs with one of these configurations.
        series: Runs of these series.
        failed: Whether failed runs stay.
        folders: These folders.
        trials: All runs of these trials.
    """

    since: float
    configurations: tuple[dict[str, Value], ...]
    series: frozenset[SeriesKind]
    failed: bool
    folders: frozenset[Path]
    trials: frozenset[int]

    def stays(self, folder: Path, run: Run) -> bool:
        """Whether the folder of a run stays."""
        return (
            folder in self.folders
            or run.trial in self.trials
            or run.series.kind in self.series
            or (self.failed and run.outcome.failure is not None)
            or dict(run.configuration) in self.configurations
            or _end_time(folder) >= self.since
        )


def _end_time(folder: Path) -> float:
    """Return when a run ended, in seconds since the epoch.

    The status file has that time. Storage has only the start, and a job may wait for days between the two.
    """
    with suppress(OSError):
        return (folder / STATUS_FILE).stat().st_mtime
    return time.time()


def _noteworthy_configurations(summary: Summary) -> Iterable[Configuration]:
    """Yield the configurations that a result is about: the winner, the front, and what they are compared with."""
    standings = summary.standings
    trials = [summary.best, standings.incumbent, standings.default, standings.baseline]
    numbers = [] if summary.verdict is None else [summary.verdict.winner]
    numbers += [point.trial for point in (() if summary.front is None else summary.front.points)]
    trials += [standings.trials.get(number) for number in numbers]
    yield from (trial.configuration for trial in trials if trial is not None)
    if summary.configuration is not None:
        yield summary.configuration


def _folders_of_leased_runs(store: StudyStore) -> frozenset[Path]:
    """Return the folders of leased runs: the next session collects the runs that the last one left."""
    return frozenset(Path(lease.record["job"]["folder"]) for lease in store.leases().all())


def _trials_with_checkpoint(trials: Iterable[TrialRecord], mark: str) -> frozenset[int]:
    """Return the trials that were paused before their last step and still have a checkpoint."""
    return frozenset(
        trial.number for trial in trials if trial.state is State.PAUSED and any(_have_checkpoint(trial, mark))
    )


def _have_checkpoint(trial: TrialRecord, mark: str) -> Iterable[bool]:
    """Yield, for each run of a trial, whether the trial's checkpoint lies beside its folder."""
    for run in (*trial.earlier, *trial.runs):
        yield Checkpoints(Path(run.job.get("folder") or "").parent, mark).folder(trial.number).is_dir()
