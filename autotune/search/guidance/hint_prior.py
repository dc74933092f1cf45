"""A prior mean from hints: configurations similar to them may be good, as far as measurements confirm it.

Each parameter's values are counted over the hints and compared with their frequencies in the valid set. The prediction
for a configuration is the product of these ratios, as in algorithms that estimate a distribution from good
configurations one variable at a time (Mühlenbein & Paaß, "From recombination of genes to the estimation of
distributions", PPSN 1996). So many hints that agree have a strong effect, and a few that disagree a weak one. The
prediction is the mean function of the search's process, so its weight depends on the study's own values (`prior_mean`).
For user beliefs that fade, see Hvarfner et al., "piBO", ICLR 2022.
"""

import numpy as np
from numpy.typing import NDArray

from spaces import Choice, Parameter, Space

_SAMPLED = 2_000
# The valid set counts as this many hints, so that one or two real hints have little effect.
_DOUBT = 4.0
# Values of a number are similar within this share of its range of values.
_NEAR = 0.1
# The information of hints drawn at random is subtracted: its mean over this many draws, times the next factor for luck.
_CHANCES = 20
_SURE = 1.5
# The change in the logarithm of the metric for a factor of e in the frequency of values, before any measurement.
_WORTH = 0.15


class HintPrior:
    """The prior mean from hints, value indexes (k, p) with k > 0, in a space."""

    def __init__(self, space: Space, hints: NDArray[np.int32]) -> None:
        self.hints = hints
        sample = space.sample_indices(np.random.default_rng(0), _SAMPLED)
        columns = zip(space.parameters, sample.T, hints.T, strict=True)
        self._logs = [_log_ratios(parameter, valid, hinted) for parameter, valid, hinted in columns]
        self._best = float(self._sum_ratios(np.concatenate([sample, hints])).max())

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log costs, (n, 1), at value indexes (n, p), relative to the row most similar to the hints."""
        costs: NDArray[np.float64] = _WORTH * (self._best - self._sum_ratios(rows))[:, None]
        return costs

    def _sum_ratios(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        # An unset parameter has index -1, which is the first entry.
        summed: NDArray[np.float64] = np.sum(
            [logs[rows[:, place] + 1] for place, logs in enumerate(self._logs)], axis=0
        )
        return summed


def _log_ratios(parameter: Parameter, valid: NDArray[np.int32], hinted: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the log ratios of each value's frequency in hints to that in the valid set, (values + 1,)."""
    count = len(parameter.values) + 1
    usual = np.bincount(valid + 1, minlength=count) + 1.0 / count
    usual /= usual.sum()
    likeness = np.eye(count)
    if not isinstance(parameter, Choice):
        steps = np.abs(np.subtract.outer(np.arange(count - 1), np.arange(count - 1)))
        near = np.exp(-steps / max(0.5, _NEAR * (count - 1)))
        likeness[1:, 1:] = near / near.sum(1, keepdims=True)

    def share(indexes: NDArray[np.int32]) -> NDArray[np.float64]:
        summed: NDArray[np.float64] = likeness[indexes + 1].sum(0) + _DOUBT * usual
        return summed / (len(indexes) + _DOUBT)

    def divergence(shares: NDArray[np.float64]) -> float:
        return float(shares @ np.log(shares / usual))

    found = share(hinted)
    rng = np.random.default_rng(0)
    by_chance = np.mean([divergence(share(rng.choice(valid, len(hinted)))) for _ in range(_CHANCES)])
    sure = max(0.0, 1.0 - _SURE * by_chance / max(divergence(found), 1e-12))
    logs: NDArray[np.float64] = sure * np.log(found / usual)
    return logs


def have_paid(hinted: NDArray[np.bool_], costs: NDArray[np.float64]) -> bool:
    """Return whether hints were better than the default and the first other trial, chosen before any result was known.

    Args:
        hinted: Whether a trial was a hint, (n,).
        costs: The values to minimise, (n,); +inf for a failed trial, NaN for one that has not ended.
    """
    own = np.flatnonzero(~hinted)[:2]
    tried = costs[hinted & ~np.isnan(costs)]
    if len(own) < 2 or not len(tried) or np.isnan(costs[own]).any():
        return False
    return bool(np.median(tried) < costs[own].min())
