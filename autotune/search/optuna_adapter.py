"""The adapter: any Optuna sampler over the valid set of a space.

The inner sampler searches the product of the domains in a study of its own (`shadow`, `codec`), and what it proposes
becomes the nearest valid configuration that no trial has. It learns what was tried instead: the values of complete
trials (their logarithm where all are positive), the bounds of capped ones, for failures more than the worst, since
Optuna's samplers pass over trials that failed, as for those that break a limit, and which trials are running.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from autotune.search.base import PASSED_OVER, History, Proposer, Rows, unseen
from autotune.search.codec import Codec
from autotune.search.mirror_study import InnerSampler, MirrorStudy
from autotune.search.training_data import TrainingData, evidence_of
from spaces import Space
from spaces.space import FloatArray

# The nearest of the whole valid set is looked for up to this size, about 30 MB; else near a valid one, and in a sample.
_LISTED = 50_000
_SAMPLED = 500
# A failure counts as worse than the worst by this share of the distance between the best and the worst.
_MARGIN = 0.25


class AdaptedSampler(Proposer):
    """Proposes what an Optuna sampler would like to see, as near as a valid, new configuration is to that.

    One that learns from any trials has `startup` uniform draws from the valid set first; one that remembers its own
    proposals begins by itself.
    """

    def __init__(self, space: Space, inner: InnerSampler, *, seed: int = 0, startup: int = 8) -> None:
        super().__init__(space, seed=seed)
        self._startup = 0 if inner.remembers else startup
        self._shadow = MirrorStudy(Codec(space, numeric=inner.numeric), inner, seed)

    @property
    def blind(self) -> int | None:
        """How many trials after the default do not depend on measurements."""
        return self._startup

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return new configurations, those nearest to what the inner sampler proposes first."""
        if len(history.rows) <= self._startup:
            return self.drawn(rng, history.rows)
        values = told(evidence_of(history.observations, history.direction, rng, self._limits))
        wanted = self._shadow.ask(history.rows, values)
        candidates, features = self._around(wanted, history.rows, rng)
        distances = ((features - self.space.encode_indices(wanted[None, :])) ** 2).sum(1)
        # On a grid many are equally near: chance decides among them, not the order of the parameters.
        nearest = np.lexsort((rng.permutation(len(distances)), np.round(distances, 9)))
        # At most `len(history.rows)` of them have been proposed; a few are wanted beyond these.
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


def told(evidence: TrainingData) -> NDArray[np.float64]:
    """Return the values that an inner sampler minimises, (n,): a number for each trial that ended, NaN for others."""
    measured = evidence.measured
    if not measured.any():
        return np.where(np.isposinf(evidence.values), 0.0, evidence.values)
    spread = float(np.ptp(evidence.values[measured])) or 1.0
    worst = float(evidence.values[measured].max()) + _MARGIN * spread
    beyond = sum((one.beyond for one in evidence.limited), np.zeros(len(measured)))
    breaks = evidence.valued & ~evidence.feasible
    # The farther beyond a limit the worse, so that the sampler finds its way to what keeps it.
    values = np.where(breaks, worst + spread * np.minimum(beyond, 1.0), evidence.values)
    return np.where(np.isposinf(evidence.values), worst + spread * bool(breaks.any()), values)
