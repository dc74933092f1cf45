"""The short runs among the runs of a study."""

from collections import defaultdict
from collections.abc import Iterable

from autotune.records.series import Series, SeriesKind
from autotune.records.study import Run


def short_runs(runs: Iterable[Run], low: int, high: int) -> dict[int, Run]:
    """Return the newest short run of each trial, by its number: those of `low` steps where whole ones have `high`."""
    return {trial: of_trial[-1] for trial, of_trial in all_short_runs(runs, low, high).items()}


def all_short_runs(runs: Iterable[Run], low: int, high: int) -> dict[int, list[Run]]:
    """Return the short runs of each trial in the order in which they ended; the default has several."""
    series, found = Series.short(low), defaultdict[int, list[Run]](list)
    for run in runs:
        if run.trial is not None and run.series == series and (run.steps, run.of) == (low, high):
            found[run.trial].append(run)
    return dict(found)


def only_short(runs: Iterable[Run]) -> frozenset[int]:
    """Return the trials that had a short run, of whatever length, and no whole one that counts."""
    made = [(run.trial, run.series) for run in runs if run.trial is not None]
    whole = {trial for trial, series in made if series.is_tuning}
    return frozenset(trial for trial, series in made if series.kind is SeriesKind.SHORT) - whole
