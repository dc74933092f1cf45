"""Estimate: what more trials of a study will cost, by those that were measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, variance

from autotune.records.study import State
from autotune.results.summary import Summary

# The normal quantile of a range that holds in nine cases of ten.
_NINE_OF_TEN = 1.645
_LEAST = 3


@dataclass(frozen=True)
class Range:
    """A sum that is expected, and the range in which it lies in nine cases of ten."""

    about: float
    low: float
    high: float

    def plus(self, more: float, share: float = 1.0) -> "Range":
        """Return the range with so much more in each number; `share` of the whole is left."""
        return Range(*((value + more) * share for value in (self.about, self.low, self.high)))


@dataclass(frozen=True)
class Estimate:
    """The cost of `trials` trials and of a verdict, in core-seconds and in seconds of wall time.

    It is worked out from `measured` trials of the study `study` on `machine`.
    """

    trials: int
    study: str
    machine: str
    measured: int
    core_s: Range
    elapsed_s: Range


def estimate(summary: Summary, trials: int, workers: int) -> Estimate | None:
    """Return what `trials` more trials cost, `workers` side by side; None where fewer than three were measured.

    Each trial is expected to cost what those of `summary` did, with their repeats; a verdict costs as much as before.
    What the search learns on the way is not taken into account: later trials may be cheaper, and more of them capped.
    """
    ended = [[*trial.earlier, *trial.runs] for trial in summary.trials if trial.state is not State.RUNNING]
    if len(ended) < _LEAST:
        return None
    core_s = [sum(run.core_s for run in of_trial) for of_trial in ended]
    elapsed_s = [sum(run.outcome.usage.elapsed_s for run in of_trial) for of_trial in ended]
    # Cores that a run of a comparison holds are those of a trial.
    compared_s = summary.ledger.comparisons * sum(elapsed_s) / (sum(core_s) or 1.0)
    return Estimate(
        trials,
        summary.name,
        str(summary.definition.machine.get("host", "")),
        len(ended),
        _sum_of(core_s, trials).plus(summary.ledger.comparisons),
        _sum_of(elapsed_s, trials).plus(0.0, 1.0 / min(workers, max(1, trials))).plus(compared_s),
    )


def _sum_of(measured: Sequence[float], count: int) -> Range:
    """Return the sum of `count` more draws like those that were measured, of which the mean is not known exactly."""
    about = count * fmean(measured)
    spread = _NINE_OF_TEN * sqrt(count * variance(measured) * (1.0 + count / len(measured)))
    return Range(about, max(count * min(measured), about - spread), about + spread)
