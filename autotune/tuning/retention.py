"""Retention: which folders of runs are older than a study keeps them, and which stay however old they are."""

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.coordination.upkeep import Removable, removable
from autotune.records.series import SeriesKind
from autotune.records.study import Definition, Run, State, TrialRecord
from autotune.results.summary import Summary, summarise
from autotune.scheduling.checkpoints import Checkpoints
from autotune.storage.study_store import StudyStore
from autotune.studyfile.stored import study_of
from launchers.supervisor import STATUS_FILE
from spaces import Configuration, Value

_DAY_S = 86400.0


def kept_s(definition: Definition) -> float | None:
    """Return for how long a study keeps the folders of its runs, as its study file says; None: for ever."""
    days = study_of(definition).runs.keep_days
    return None if days is None else days * _DAY_S


def outdated(store: StudyStore, older_than_s: float, *, whole: bool = False) -> Removable:
    """Return the folders of runs that ended longer ago than that.

    Failed runs keep theirs, and so do the winner, the default, and the pairs behind a decision table, unless `whole`
    is given. A run in flight and a trial that resumes from its checkpoint always keep theirs.
    """
    rule = _Rule(
        time.time() - older_than_s,
        () if whole else tuple(map(dict, _of_note(summarise(store)))),
        frozenset() if whole else frozenset({SeriesKind.CELL}),
        not whole,
        _in_flight(store),
        _going_on(store.trials(), store.mark),
    )
    return removable(store, rule.stays)


@dataclass(frozen=True)
class _Rule:
    """What stays: runs that ended since then, failed ones, and these configurations, series, folders and trials."""

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
            or _ended(folder) >= self.since
        )


def _ended(folder: Path) -> float:
    """Return when a run ended: a job may wait for days between its start, as storage has it, and its end."""
    with suppress(OSError):
        return (folder / STATUS_FILE).stat().st_mtime
    return time.time()


def _of_note(summary: Summary) -> Iterable[Configuration]:
    """Return the configurations that a result is about: winner, front, and what they are compared with."""
    standings = summary.standings
    trials = [summary.best, standings.incumbent, standings.default, standings.baseline]
    numbers = [] if summary.verdict is None else [summary.verdict.winner]
    numbers += [point.trial for point in (() if summary.front is None else summary.front.points)]
    trials += [standings.trials.get(number) for number in numbers]
    yield from (trial.configuration for trial in trials if trial is not None)
    if summary.configuration is not None:
        yield summary.configuration


def _in_flight(store: StudyStore) -> frozenset[Path]:
    """Return the folders of runs that are leased: what a session left, the next one collects."""
    return frozenset(Path(lease.record["job"]["folder"]) for lease in store.leases().all())


def _going_on(trials: Iterable[TrialRecord], mark: str) -> frozenset[int]:
    """Return the trials that were left before their last step and have a checkpoint still."""
    return frozenset(trial.number for trial in trials if trial.state is State.PAUSED and any(_checkpoints(trial, mark)))


def _checkpoints(trial: TrialRecord, mark: str) -> Iterable[bool]:
    """Tell of each of a trial's runs whether its checkpoint is beside it."""
    for run in (*trial.earlier, *trial.runs):
        yield Checkpoints(Path(run.job.get("folder") or "").parent, mark).folder(trial.number).is_dir()
