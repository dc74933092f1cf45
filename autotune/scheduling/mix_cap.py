"""Caps for runs of several inputs: stop a run once one input is too slow for the others to make up for it.

The cap bounds the weighted value of all inputs, so the cap of one input depends on the values of the others, which are
not known yet. For those we assume the best value of any run so far, improved by `HOPE`. Few runs say little about what
is possible, so no run is stopped before `ENOUGH` configurations have run all inputs.
"""

from collections.abc import Iterable, Sequence
from math import exp, fsum, log
from statistics import median

from autotune.execution.capping import SHORTEST_S, Cap, OptimisticInput
from autotune.records.outcome import Outcome
from autotune.studyfile.definition import MixedInput
from objectives.base import Metric

HOPE = 1.25
"""The factor by which an input that has not run yet may beat the best value seen."""

ENOUGH = 5
"""Configurations that must have run all inputs first: the default alone may be far from the best on each input."""

_DETAILS = "inputs"


def mix_cap(
    metric: Metric, bound: float, inputs: Sequence[MixedInput], runs: Iterable[Sequence[Outcome]]
) -> Cap | None:
    """Return the cap for a run of several inputs; None while too few configurations have run all of them.

    Args:
        metric: The weighted metric of all inputs.
        bound: Its value at which the run has lost.
        inputs: The inputs, with their shares of the weight.
        runs: The outcomes of each configuration so far.
    """
    ended = [[outcome for outcome in outcomes if outcome.complete] for outcomes in runs]
    if sum(bool(outcomes) for outcomes in ended) < ENOUGH:
        return None
    complete = [outcome for outcomes in ended for outcome in outcomes]
    optimistic = {
        one.name: _optimistic_value(one.target, [run.metrics[one.target.name] for run in complete]) for one in inputs
    }
    capped = []
    for one in inputs:
        others = fsum(other.share * log(optimistic[other.name]) for other in inputs if other is not one)
        limit_s = exp((log(bound) - others) / one.share) if one.target.is_seconds else 0.0
        lost_after_s = limit_s + 2.0 * _overhead_s(one, complete) if limit_s >= SHORTEST_S else None
        capped.append(OptimisticInput(one.target.name, one.share, optimistic[one.name], lost_after_s))
    return Cap(metric, bound, inputs=tuple(capped))


def _optimistic_value(target: Metric, values: Sequence[float]) -> float:
    best = min(values, key=target.cost)
    return best * HOPE if target.direction == "maximize" else best / HOPE


def _overhead_s(one: MixedInput, complete: Sequence[Outcome]) -> float:
    """Return the median of a job's wall time less the time that is its value, in seconds."""
    known = (outcome.details.get(_DETAILS, {}).get(one.name, {}).get("elapsed_s") for outcome in complete)
    pairs = zip(known, complete, strict=True)
    return max(0.0, median([float(job_s) - run.metrics[one.target.name] for job_s, run in pairs if job_s] or [0.0]))
