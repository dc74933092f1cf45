"""The short runs among the runs of a study."""

from collections.abc import Iterable

from autotune.records.series import Series
from autotune.records.study import Run


def short_runs(runs: Iterable[Run], low: int, high: int) -> dict[int, Run]:
    """Return the newest short run of each trial, by its number: those of `low` steps where whole ones have `high`."""
    series = Series.short(low)
    mine = (run for run in runs if run.series == series and (run.steps, run.of) == (low, high))
    return {run.trial: run for run in mine if run.trial is not None}
