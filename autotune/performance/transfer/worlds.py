"""Possible worlds: what the efficiencies of configurations may be on a machine where nothing was measured.

In some the machine is like those that share a fact with it, in one it is what trees make of all facts, and in the
others it is like one of the known machines.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.similarity import sharing, squared_distances
from autotune.performance.transfer.evidence import Evidence
from autotune.performance.transfer.trees import Trees

# How probable each kind of world is, relative to one another. Between half and twice of these nothing changes much.
_LEARNT, _ALIKE, _SAME = 1.0, 1.0, 0.3
# With fewer machines nothing can be learned of how they differ.
_LEARNT_FROM = 3


@dataclass(frozen=True, eq=False)
class Worlds:
    """The efficiencies of n configurations in w worlds, (w, n), the best in each being 1, and their chances, (w,)."""

    efficiencies: FloatArray
    chances: FloatArray

    @classmethod
    def of(cls, evidence: Evidence, learnt: Evidence, sources: Sequence[int], target: int) -> "Worlds":
        """Return the possible worlds of a machine, by some of the known ones.

        Args:
            evidence: of the configurations that are in question.
            learnt: of those that trees learn from.
            sources: indices of machines, at least one.
            target: the index of the machine.
        """
        same = np.exp(evidence.whole[list(sources)])
        if len(sources) < _LEARNT_FROM:
            far = squared_distances([evidence.facts[machine] for machine in (*sources, target)])[-1, :-1]
            near = np.exp(-far / 2.0).tolist()
            return cls._with([(weight, world[None, :]) for weight, world in zip(near, same, strict=True)])
        groups = sharing([evidence.facts[source] for source in sources], evidence.facts[target])
        smooth = np.exp(evidence.smooth[list(sources)])
        alike = np.array([smooth[list(group)].mean(axis=0) for group in groups or [tuple(range(len(sources)))]])
        trees = Trees.fitted(learnt, sources).predict(evidence, target)
        return cls._with([(_LEARNT, trees[None, :]), (_ALIKE, alike), (_SAME, same)])

    @classmethod
    def _with(cls, kinds: Sequence[tuple[float, FloatArray]]) -> "Worlds":
        efficiencies = np.concatenate([worlds / worlds.max(axis=1, keepdims=True) for _, worlds in kinds])
        chances = np.concatenate([np.full(len(worlds), chance / len(worlds)) for chance, worlds in kinds])
        return cls(efficiencies, chances / chances.sum())

    @property
    def expected(self) -> FloatArray:
        """The expected efficiency of each configuration, (n,)."""
        expected: FloatArray = self.chances @ self.efficiencies
        return expected
