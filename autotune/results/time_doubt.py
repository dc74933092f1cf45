"""Doubts in the values of trials: a time that is longer than its run, and a highest load that may be higher."""

from collections.abc import Iterable, Sequence

from autotune.formatting import quantity
from autotune.records.study import TrialRecord
from objectives.base import AT_END, Metric


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


def bound_doubt(compared: Sequence[TrialRecord | None]) -> str | None:
    """Return a sentence on the trials whose search for the highest load came to its end; None if there are none."""
    trials = {trial.number: trial for trial in compared if trial is not None}
    bound = [str(number) for number, trial in trials.items() if any(AT_END in one.remark for one in trial.outcomes)]
    if not bound:
        return None
    return f"trial {' and '.join(bound)} came to the end of the search, so its value is only a lower bound: raise `to`"
