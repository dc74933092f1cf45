"""From where on a run of a mix has lost: its other inputs may be as good as was ever seen, and better still.

A bound of the mix bounds each input only together with what the others will show, which nobody knows. They are given
the benefit of the doubt: the best value of any run so far, made better by `HOPE`. What little has run says little of
what is possible, so nothing is stopped before `ENOUGH` configurations have run all inputs.
"""

from collections.abc import Iterable, Sequence
from math import exp, fsum, log
from statistics import median

from autotune.execution.capping import SHORTEST_S, Cap, HopedInput
from autotune.records.mix import MixedInput
from autotune.records.outcome import Outcome
from objectives.base import Metric

HOPE = 1.25
"""How many times better than the best seen an input may be that has not run yet."""

ENOUGH = 5
"""So many configurations must have run all inputs: the default alone may be far from the best on each of them."""

_DETAILS = "inputs"


def mix_cap(
    metric: Metric, bound: float, inputs: Sequence[MixedInput], runs: Iterable[Sequence[Outcome]]
) -> Cap | None:
    """Return the cap of a mix for a bound of its value; None while too few configurations have run all inputs.

    `runs` are the outcomes of each configuration so far.
    """
    ended = [[outcome for outcome in outcomes if outcome.complete] for outcomes in runs]
    if sum(bool(outcomes) for outcomes in ended) < ENOUGH:
        return None
    complete = [outcome for outcomes in ended for outcome in outcomes]
    hoped = {one.name: _hoped(one.target, [run.metrics[one.target.name] for run in complete]) for one in inputs}
    capped = []
    for one in inputs:
        others = fsum(other.share * log(hoped[other.name]) for other in inputs if other is not one)
        limit_s = exp((log(bound) - others) / one.share) if one.target.is_seconds else 0.0
        lost_after_s = limit_s + 2.0 * _overhead_s(one, complete) if limit_s >= SHORTEST_S else None
        capped.append(HopedInput(one.target.name, one.share, hoped[one.name], lost_after_s))
    return Cap(metric, bound, inputs=tuple(capped))


def _hoped(target: Metric, values: Sequence[float]) -> float:
    best = min(values, key=target.cost)
    return best * HOPE if target.direction == "maximize" else best / HOPE


def _overhead_s(one: MixedInput, complete: Sequence[Outcome]) -> float:
    """Return what the job of an input usually takes beside the time that is its value."""
    known = (outcome.details.get(_DETAILS, {}).get(one.name, {}).get("elapsed_s") for outcome in complete)
    pairs = zip(known, complete, strict=True)
    return max(0.0, median([float(job_s) - run.metrics[one.target.name] for job_s, run in pairs if job_s] or [0.0]))
