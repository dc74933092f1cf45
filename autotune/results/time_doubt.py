"""The doubt that a program's time is the time of its run: it is longer than the run, as a sum over ranks is."""

from collections.abc import Iterable

from autotune.formatting import quantity
from autotune.records.study import TrialRecord
from objectives.base import Metric


def time_doubt(trials: Iterable[TrialRecord], metric: Metric) -> str | None:
    """Return a sentence on the runs whose `metric` is longer than they took; None if there are none."""
    complete = [(trial.number, run.outcome) for trial in trials for run in trial.runs if run.outcome.complete]
    longer = [
        (number, outcome)
        for number, outcome in complete
        if metric.exceeds_run(outcome.metrics.get(metric.name, 0.0), outcome.usage.elapsed_s)
    ]
    if not longer:
        return None
    number, outcome = longer[0]
    value = quantity(outcome.metrics[metric.name], metric)
    return (
        f"{metric.name} cannot be the time of a run: it is {value} in trial {number}, whose whole run took "
        f"{outcome.usage.elapsed_s:.3g} s; if it is a sum over ranks or threads, comparisons by it are wrong"
    )
