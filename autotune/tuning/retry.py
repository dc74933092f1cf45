"""Retrying: failed runs are set aside, so that their trials run again. They stay in the log of runs."""

from collections.abc import Collection, Iterable, Sequence

from autotune.records.outcome import ANOTHER_PACE, DISTURBED, SHARED_CORES, Outcome
from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord
from autotune.statistics.standings import Standings
from autotune.storage.amendment import Amendment
from autotune.storage.study_store import StudyStore

# The code of a run that worked, of a trial that goes on from where it failed before that.
_BEGUN_ANEW = "begun-anew"


def retry(store: StudyStore, *, everything: bool) -> None:
    """Let failed trials run again: `everything`, or only the default where the study stopped at it."""
    standings = Standings.of(store.trials(), store.definition.target)
    default = standings.default
    trials: Sequence[TrialRecord] = [trial for trial in standings.trials.values() if trial.state is State.FAILED]
    if not everything:
        trials = [trial for trial in trials if trial is default and not standings.measured]
    if trials:
        _set_aside(store, [trial.number for trial in trials])


def announced(trials: Iterable[TrialRecord], runs: Iterable[Run], busy: Collection[int]) -> list[str]:
    """Say which trials run again, of all that have no run and none in flight, at the start of a session."""
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
        return "was disturbed by others"
    if outcome.code == ANOTHER_PACE:
        return "was measured when the machine was another one in effect"
    return "could not be read again" if outcome.failure is None else "failed"


def _set_aside(store: StudyStore, numbers: Sequence[int]) -> None:
    """Set aside the runs of trials from the first failed one on; a program that works in steps begins anew.

    Runs are named by their number: after a gap, a new one would get the folder of one that counts.
    """
    aside: dict[int, Run] = {}
    anew: set[int | None] = set()
    for key, run in sorted(store.keyed_runs().items()):
        if run.series.is_tuning and run.trial in numbers:
            if run.outcome.failure is not None or run.steps is not None:
                anew.add(run.trial)
            if run.trial in anew:
                aside[key] = run
    worked = {key: run.outcome for key, run in aside.items() if run.outcome.failure is None and run.steps is None}
    outcomes = {key: outcome.set_aside(_BEGUN_ANEW, "a run before it failed") for key, outcome in worked.items()}
    store.amend(Amendment(outcomes=outcomes, aside=list(aside), reopened=numbers))
