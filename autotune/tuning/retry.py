"""Retry failed trials: their runs are set aside, and stay in the log of runs."""

from collections.abc import Collection, Iterable, Sequence

from autotune.records.outcome import ANOTHER_PACE, DISTURBED, SHARED_CORES, Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord
from autotune.statistics.standings import Standings
from autotune.storage.run_corrections import RunCorrections
from autotune.storage.study_store import StudyStore

# The code of a run that worked, but whose trial starts over because another run of it failed.
_TRIAL_RESTARTED = "trial-restarted"


def retry_failed(store: StudyStore, *, everything: bool) -> None:
    """Set aside the runs of all failed trials; without `everything`, only those of a default that stopped the study."""
    standings = Standings.of(store.trials(), store.definition.target)
    default = standings.default
    trials: Sequence[TrialRecord] = [trial for trial in standings.trials.values() if trial.state is State.FAILED]
    if not everything:
        trials = [trial for trial in trials if trial is default and not standings.measured]
    if trials:
        _set_aside(store, [trial.number for trial in trials])


def describe_reopened(trials: Iterable[TrialRecord], runs: Iterable[Run], busy: Collection[int]) -> list[str]:
    """Return a line for each trial that runs again, with the reason, at the start of a session.

    These are the open trials without a run, unless one is in flight (`busy`).
    """
    why = {run.trial: _why_aside(run.outcome) for run in runs if run.series.kind is SeriesKind.ASIDE}
    return [
        f"trial {trial.number}: {why.get(trial.number, 'was interrupted')}, runs again"
        for trial in trials
        if not trial.settled and not trial.runs and trial.number not in busy
    ]


def _why_aside(outcome: Outcome) -> str:
    if outcome.code == SHARED_CORES:
        return "shared its cores with another run"
    if outcome.code == DISTURBED:
        return "was disturbed by other processes"
    if outcome.code == ANOTHER_PACE:
        return "was measured when the machine was slower or faster"
    return "could not be read again" if outcome.failure is None else "failed"


def _set_aside(store: StudyStore, numbers: Sequence[int]) -> None:
    """Set aside the runs of trials from the first failed one on; of a program that works in steps, all runs.

    No gap may stay before a run that counts: runs are named by their number, so a new run would get the folder of an
    old one.
    """
    aside: dict[int, Run] = {}
    restarted: set[int | None] = set()
    for key, run in sorted(store.runs_by_key().items()):
        if run.series.is_tuning and run.trial in numbers:
            if run.outcome.failure is not None or run.steps is not None:
                restarted.add(run.trial)
            if run.trial in restarted:
                aside[key] = run
    worked = {key: run.outcome for key, run in aside.items() if run.outcome.failure is None and run.steps is None}
    outcomes = {key: outcome.set_aside(_TRIAL_RESTARTED, "a run before it failed") for key, outcome in worked.items()}
    store.correct_runs(RunCorrections(outcomes=outcomes, aside=list(aside), reopened=numbers))
