"""What hints say of configurations: those that are like them may be good, and measurements decide how far that holds.

Each parameter's values are counted over the hints, and compared with how often they come in the valid set: a
configuration is as good as the product of these ratios says, as in algorithms that estimate a distribution from good
configurations one variable at a time (Mühlenbein & Paaß, "From recombination of genes to the estimation of
distributions", PPSN 1996). So many hints that agree say much, and a few that do not, little. It enters the search as
the mean function of its process, as what other machines say does, and so is followed only as far as the study's own
values agree (`prior_mean`); for beliefs of users that fade: Hvarfner et al., "piBO", ICLR 2022.
"""

import numpy as np
from numpy.typing import NDArray

from spaces import Choice, Parameter, Space

_SAMPLED = 2_000
# The valid set counts as so many hints: one or two say little.
_DOUBT = 4.0
# Values of a number are like those this share of its values away.
_NEAR = 0.1
# What hints drawn at random would tell is taken off: the mean of so many such draws, and half of it for luck.
_CHANCES = 20
_SURE = 1.5
# What a factor of e in how often values come is worth in the logarithm of the metric, before anything was measured.
_WORTH = 0.15


class HintPrior:
    """The prior mean that follows from hints, value indexes (k, p), k of them one at least, in a space."""

    def __init__(self, space: Space, hints: NDArray[np.int32]) -> None:
        self.hints = hints
        sample = space.sample_indices(np.random.default_rng(0), _SAMPLED)
        columns = zip(space.parameters, sample.T, hints.T, strict=True)
        self._logs = [_log_ratios(parameter, valid, hinted) for parameter, valid, hinted in columns]
        self._best = float(self._summed(np.concatenate([sample, hints])).max())

    def fields(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Return the log costs, (n, 1), of value indexes `rows`, (n, p), relative to what is most like the hints."""
        costs: NDArray[np.float64] = _WORTH * (self._best - self._summed(rows))[:, None]
        return costs

    def _summed(self, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        # The index of no value is -1: the first entry is that of it.
        summed: NDArray[np.float64] = np.sum(
            [logs[rows[:, place] + 1] for place, logs in enumerate(self._logs)], axis=0
        )
        return summed


def _log_ratios(parameter: Parameter, valid: NDArray[np.int32], hinted: NDArray[np.int32]) -> NDArray[np.float64]:
    """Return the logarithms of how much more often each value comes in hints than in the valid set, (values + 1,)."""
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

    def told(shares: NDArray[np.float64]) -> float:
        return float(shares @ np.log(shares / usual))

    found = share(hinted)
    rng = np.random.default_rng(0)
    by_chance = np.mean([told(share(rng.choice(valid, len(hinted)))) for _ in range(_CHANCES)])
    sure = max(0.0, 1.0 - _SURE * by_chance / max(told(found), 1e-12))
    logs: NDArray[np.float64] = sure * np.log(found / usual)
    return logs


def are_worth(hinted: NDArray[np.bool_], costs: NDArray[np.float64]) -> bool:
    """Whether hints were better than what was tried without them: the default, and the first trial after it.

    `hinted`, (n,), tells which trials were hints, `costs`, (n,), are their values to minimise: +inf for a failed one,
    NaN for one that has not ended. These two were chosen before anything was known.
    """
    own = np.flatnonzero(~hinted)[:2]
    tried = costs[hinted & ~np.isnan(costs)]
    if len(own) < 2 or not len(tried) or np.isnan(costs[own]).any():
        return False
    return bool(np.median(tried) < costs[own].min())
