"""The adapter: use any Optuna sampler over the valid set of a space.

The inner sampler searches the product of the domains in a study of its own (`mirror_study`, `codec`). The nearest valid
configuration that no trial has replaces its proposal, and the sampler learns the result of that one: the value of a
complete trial (the logarithm if all are positive) or the bound of a capped one. Failed trials and those that break a
limit get a value worse than the worst, since Optuna's samplers ignore trials that failed. It also sees the running
trials.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import PASSED_OVER, History, Proposer, Rows, unseen
from autotune.search.codec import Codec
from autotune.search.mirror_study import InnerSampler, MirrorStudy
from autotune.search.training_data import TrainingData, training_data_of
from spaces import Space
from spaces.space import FloatArray

# Up to this size (about 30 MB) the whole valid set is searched for the nearest; else a sample and some neighbours.
_LISTED = 50_000
_SAMPLED = 500
# A failure is worse than the worst by this share of the difference between the best and the worst.
_MARGIN = 0.25


class AdaptedSampler(Proposer):
    """Proposes the new valid configuration nearest to what an Optuna sampler proposes.

    A sampler that learns from any trials gets `startup` uniform draws from the valid set first. A sampler that stores
    notes on its own proposals begins at once.
    """

    def __init__(self, space: Space, inner: InnerSampler, *, seed: int = 0, startup: int = 8) -> None:
        super().__init__(space, seed=seed)
        self._startup = 0 if inner.remembers else startup
        self._mirror = MirrorStudy(Codec(space, numeric=inner.numeric), inner, seed)

    @property
    def startup_trials(self) -> int | None:
        """The number of trials after the default that do not depend on measurements."""
        return self._startup

    def rank(self, history: History, rng: np.random.Generator) -> Rows:
        """Return new configurations, those nearest to the inner sampler's proposal first."""
        if len(history.rows) <= self._startup:
            return self.draw(rng, history.rows)
        values = values_to_minimise(training_data_of(history.observations, history.direction, rng, self._limits))
        wanted = self._mirror.ask(history.rows, values)
        candidates, features = self._around(wanted, history.rows, rng)
        distances = ((features - self.space.encode_indices(wanted[None, :])) ** 2).sum(1)
        # On a grid many are equally near; chance decides among them, not the order of the parameters.
        nearest = np.lexsort((rng.permutation(len(distances)), np.round(distances, 9)))
        # At most `len(history.rows)` of them have been proposed; a few more are needed.
        return unseen(candidates[nearest[: len(history.rows) + PASSED_OVER]], history.rows)

    def _around(self, wanted: Rows, seen: Rows, rng: np.random.Generator) -> tuple[Rows, FloatArray]:
        if self.space.listable and self.space.size.value <= _LISTED:
            return self._listed
        nearest = self.space.nearest(self.space.decode(wanted[None, :])[0])
        near = self.space.indices([nearest, *self.space.neighbours(nearest)])
        sampled = self.space.sample_indices(rng, len(seen) + _SAMPLED)
        rows = np.unique(np.concatenate([near, sampled]), axis=0)
        return rows, self.space.encode_indices(rows)

    @cached_property
    def _listed(self) -> tuple[Rows, FloatArray]:
        rows = self.space.all_indices()
        return rows, self.space.encode_indices(rows)


def values_to_minimise(evidence: TrainingData) -> NDArray[np.float64]:
    """Return the values that an inner sampler minimises, (n,): a number for each ended trial, NaN for running ones."""
    measured = evidence.measured
    if not measured.any():
        return np.where(np.isposinf(evidence.values), 0.0, evidence.values)
    spread = float(np.ptp(evidence.values[measured])) or 1.0
    worst = float(evidence.values[measured].max()) + _MARGIN * spread
    beyond = sum((one.beyond for one in evidence.limited), np.zeros(len(measured)))
    breaks = evidence.valued & ~evidence.feasible
    # The farther beyond a limit, the worse the value, so that the sampler is led to configurations that keep it.
    values = np.where(breaks, worst + spread * np.minimum(beyond, 1.0), evidence.values)
    return np.where(np.isposinf(evidence.values), worst + spread * bool(breaks.any()), values)
