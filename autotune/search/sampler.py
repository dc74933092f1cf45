"""The sampler over the valid set: an Optuna sampler that proposes only valid configurations not measured before.

The first proposal is the default configuration, the next few are uniform draws from the valid set, the rest maximise
the expected improvement of a Gaussian process over the valid set itself where it is small, or over a sample of it and
the neighbours of the best where it is not. A value of several runs weighs as much; a capped trial counts as somewhere
above its bound; a failed one as a standard deviation worse than the worst, and near it an improvement is expected only
as far as a run is expected to work; running trials are believed at the model's mean (kriging believer: Ginsbourger, Le
Riche & Carraro 2010). What is known to be the same in effect as a measured configuration is passed over.
"""

import numpy as np
from numpy.typing import NDArray

from autotune.search.evidence import Evidence, evidence_of
from autotune.search.feasibility import chance_to_work
from autotune.search.proposer import PASSED_OVER, History, Proposer, Rows, unseen
from autotune.search.surrogate import expected_improvement, fit, fit_censored
from spaces import Configuration, Space

# All of a valid set up to this size is scored; of a larger one a sample of this size.
_SCORED = 2_000
# Neighbours of that many of the best are scored too, so that the search can refine where sampling is thin.
_REFINED = 5
# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300


class ValidSetSampler(Proposer):
    """Proposes `startup` trials at random, then guided by a model, or at random for ever without one."""

    def __init__(self, space: Space, *, seed: int = 0, startup: int = 8, model: bool = True) -> None:
        super().__init__(space, seed=seed)
        self._startup = startup
        self._model = model

    @property
    def blind(self) -> int | None:
        """How many trials after the default do not depend on measurements."""
        return self._startup if self._model else None

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        if not self._model or len(seen) <= self._startup:
            return self.drawn(rng, seen)
        evidence = evidence_of(history.observations, history.direction, rng)
        candidates = unseen(self._candidates(rng, seen, evidence), seen)
        chosen: Rows = candidates[self._best(candidates, seen, evidence)]
        return chosen

    def _candidates(self, rng: np.random.Generator, seen: Rows, evidence: Evidence) -> Rows:
        if self.space.listable and self.space.size.value <= _SCORED:
            return rng.permutation(self.space.all_indices())
        drawn = self.space.sample_indices(rng, _SCORED)
        best = self.space.decode(seen[np.argsort(evidence.values)[:_REFINED]])
        near: list[Configuration] = [n for configuration in best for n in self.space.neighbours(configuration)]
        return np.concatenate([drawn, self.space.indices(near)]) if near else drawn

    def _best(self, candidates: Rows, seen: Rows, evidence: Evidence) -> NDArray[np.intp]:
        """Return the places of the best candidates, the best first."""
        measured = np.isfinite(evidence.values)
        if (measured & ~evidence.censored).sum() < 2:
            return np.arange(min(PASSED_OVER, len(candidates)))
        # A failure counts as bad, or the process would be curious about it.
        worst = evidence.values[measured].max() + evidence.values[measured].std()
        values = np.where(np.isposinf(evidence.values), worst, evidence.values)
        x = self.space.encode_indices(seen)
        rows = self.space.encode_indices(candidates)
        chosen = _remembered(values)
        surrogate = fit_censored(x[chosen], values[chosen], evidence.runs[chosen], evidence.censored[chosen])
        if evidence.pending.any():
            believed, _ = surrogate.predict(x[evidence.pending])
            surrogate = fit(
                np.concatenate([surrogate.x, x[evidence.pending]]),
                np.concatenate([surrogate.y, believed]),
                np.concatenate([evidence.runs[chosen], np.ones(len(believed))]),
            )
        mean, deviation = surrogate.predict(rows)
        best = float(evidence.values[measured & ~evidence.censored].min())
        told = ~evidence.pending
        works = chance_to_work(rows, x[told], measured[told].astype(float))
        promise = expected_improvement(mean, deviation, best) * works
        return np.argsort(-promise, kind="stable")[:PASSED_OVER]


def _remembered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    told = np.flatnonzero(~np.isnan(values))
    if len(told) <= _REMEMBERED:
        return told
    half = _REMEMBERED // 2
    best = told[np.argsort(values[told], kind="stable")[:half]]
    return np.union1d(best, told[-half:])
