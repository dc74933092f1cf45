"""The run of the configuration to use: what a job script repeats."""

from autotune.records.series import SeriesKind
from autotune.records.study import Run
from autotune.results.summary import Summary
from autotune.storage.readable import ReadableStudy

_ELSEWHERE = {SeriesKind.SHORT, SeriesKind.WORKLOAD, SeriesKind.WATCH, SeriesKind.ASIDE}


def run_to_use(store: ReadableStudy, summary: Summary) -> Run | None:
    """Return the newest complete run of the configuration to use, not on other workloads; None without one."""
    wanted = dict(summary.configuration or {})
    runs = [
        run
        for run in store.runs()
        if run.outcome.complete and dict(run.configuration) == wanted and run.series.kind not in _ELSEWHERE
    ]
    return runs[-1] if runs and summary.configuration is not None else None
