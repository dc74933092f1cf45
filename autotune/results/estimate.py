"""Estimate the cost of more trials of a study from those that were measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from autotune.records.study import State
from autotune.results.summary import Summary

# The normal quantile of a range that is right in nine of ten cases.
_NINE_OF_TEN = 1.645
_LEAST = 3


@dataclass(frozen=True)
class Range:
    """An expected sum, and the range that contains it in nine of ten cases."""

    about: float
    low: float
    high: float

    def plus(self, more: float, share: float = 1.0) -> "Range":
        """Return the range with `more` added to each number, then multiplied by `share`."""
        return Range(*((value + more) * share for value in (self.about, self.low, self.high)))


@dataclass(frozen=True)
class Estimate:
    """The estimated cost of more trials and a verdict.

    Attributes:
        trials: The number of trials.
        study: The study that it is estimated from.
        machine: The machine of that study.
        measured: The number of its measured trials.
        core_s: The cost in core-seconds.
        elapsed_s: The wall time in seconds.
    """

    trials: int
    study: str
    machine: str
    measured: int
    core_s: Range
    elapsed_s: Range


def estimate(summary: Summary, trials: int, workers: int) -> Estimate | None:
    """Return the cost of `trials` more trials, `workers` at a time; None if fewer than three were measured.

    Each trial is expected to cost as much as those of `summary`, with their repeats, and a verdict as much as before.
    The estimate ignores what the search learns: later trials may be cheaper, and more of them capped.
    """
    ended = [[*trial.earlier, *trial.runs] for trial in summary.trials if trial.state is not State.RUNNING]
    if len(ended) < _LEAST:
        return None
    core_s = [sum(run.core_s for run in of_trial) for of_trial in ended]
    elapsed_s = [sum(run.outcome.usage.elapsed_s for run in of_trial) for of_trial in ended]
    # A run of the verdict holds as many cores as a run of a trial.
    verdict_s = summary.ledger.verdict * sum(elapsed_s) / (sum(core_s) or 1.0)
    return Estimate(
        trials,
        summary.name,
        str(summary.definition.machine.get("host", "")),
        len(ended),
        _sum_of(core_s, trials).plus(summary.ledger.verdict),
        _sum_of(elapsed_s, trials).plus(0.0, 1.0 / min(workers, max(1, trials))).plus(verdict_s),
    )


def _sum_of(measured: Sequence[float], count: int) -> Range:
    """Return the sum of `count` more draws like the measured ones; the range includes the error of their mean."""
    about = count * fmean(measured)
    spread = _NINE_OF_TEN * sqrt(count * variance(measured) * (1.0 + count / len(measured)))
    return Range(about, max(count * min(measured), about - spread), about + spread)
