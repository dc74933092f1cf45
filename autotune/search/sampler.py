"""The sampler over the valid set: an Optuna sampler that proposes only valid configurations not measured before.

The first proposal is the default configuration, the next few spread over the valid set, the rest maximise the expected
improvement of a Gaussian process on the traits of configurations (`spaces.traits`), over the valid set itself where it
is small, or over a sample of it and the neighbours of the best where it is not. A value of several runs weighs as much;
a capped trial counts as somewhere above its bound; a failed one as a standard deviation worse than the worst, and near
it an improvement is expected only as far as a run is expected to work; running trials are believed at the model's mean
(kriging believer: Ginsbourger, Le Riche & Carraro 2010). What measurements elsewhere say of configurations is the mean
function of the process (`guide`); where predictions were tried first, it makes up for spreading over the valid set.
What is known to be the same in effect as a measured configuration is passed over. Why so, and what was measured:
docs/search.md.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from autotune.search import design
from autotune.search.evidence import Evidence, are_ratios, evidence_of
from autotune.search.feasibility import chance_to_work
from autotune.search.guide import UNGUIDED, Guide, Leaning
from autotune.search.proposer import PASSED_OVER, History, Proposer, Rows, fresh, unseen
from autotune.search.surrogate import Array, Surrogate, fit_censored, log_expected_improvement
from spaces import Space

# All of a valid set up to this size is scored; of a larger one a sample of this size.
_SCORED = 5_000
_SIMULATED = 1_000
# Of a larger one the neighbours of that many of the best measured and of the most promising are scored, too, the
# latter so often: the search can refine where the sample is thin.
_REFINED = 5
_CLIMBS = 3
# A design is chosen from so many.
_DESIGNED = 500
# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300
# A model is made of two values or more.
_LEAST_VALUES = 2


@dataclass(frozen=True)
class Model:
    """What is believed of a space: the mean function, and the process of what it leaves unsaid; the best mean so far.

    Where runs work is known from what was `tried`, traits (n, d), and `worked`, (n,).
    """

    space: Space
    leaning: Leaning
    surrogate: Surrogate
    tried: Array
    worked: Array
    best: float

    def promise(self, rows: Rows) -> Array:
        """Return the logarithm of the improvement expected at value indexes, (m, p)."""
        traits = self.space.traits_of(rows)
        mean, deviation = self.surrogate.predict(traits)
        improvement = log_expected_improvement(self.leaning.of(rows) + mean, deviation, self.best)
        promise: Array = improvement + np.log(self.works(traits))
        return promise

    def works(self, traits: Array) -> Array:
        """Return the chances, (m,), that runs at `traits`, (m, d), work."""
        return chance_to_work(traits, self.tried, self.worked)


@dataclass(frozen=True)
class Weighed:
    """What a model, by the `evidence`, expects of candidates: value indexes, (m, p), and their promise, (m,)."""

    model: Model
    evidence: Evidence
    candidates: Rows
    promise: Array

    @property
    def order(self) -> NDArray[np.intp]:
        """The places of the candidates, the most promising first."""
        return np.argsort(-self.promise, kind="stable")


class ValidSetSampler(Proposer):
    """Proposes `startup` trials by design, then guided by a model; or at random for ever without one."""

    def __init__(self, space: Space, *, seed: int = 0, startup: int = 6, model: bool = True) -> None:
        super().__init__(space, seed=seed)
        self._startup = startup
        self._model = model
        self._guide: Guide = UNGUIDED

    @property
    def blind(self) -> int | None:
        """How many trials after the default do not depend on measurements."""
        return self._startup if self._model else None

    def guide_by(self, guide: Guide | None) -> None:
        """Heed what other settings say of configurations, where values are compared by ratio: without a trade-off."""
        self._guide = guide or UNGUIDED

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return candidates that no trial has, the most promising first."""
        seen = history.rows
        if not self._model:
            return self.drawn(rng, seen)
        if len(seen) <= self._startup and not self._is_led(history):
            return self._designed(seen, rng)
        weighed = self.weighed(history, rng)
        if weighed is None:
            return self.drawn(rng, seen)
        best: Rows = weighed.candidates[weighed.order[:PASSED_OVER]]
        return best

    def weighed(self, history: History, rng: np.random.Generator) -> "Weighed | None":
        """Return the candidates with what is expected of them; None while nothing is believed.

        Raises:
            SpaceExhaustedError: there is none left.
        """
        evidence = evidence_of(history.observations, history.direction, rng)
        model = model_of(self.space, history.rows, evidence, self._guide_of(history))
        return Weighed(model, evidence, *self._scored(model, history.rows, evidence, rng)) if model else None

    def _guide_of(self, history: History) -> Guide:
        return self._guide if are_ratios(history.observations) else UNGUIDED

    def _is_led(self, history: History) -> bool:
        """Whether predictions and the guide make up for a design: they were tried, and the model has values."""
        values = sum(one.value is not None for one in history.observations)
        return len(self._predicted) > 0 and self._guide_of(history) is not UNGUIDED and values >= _LEAST_VALUES

    def _designed(self, seen: Rows, rng: np.random.Generator) -> Rows:
        candidates = unseen(self.space.sample_indices(rng, len(seen) + _DESIGNED), seen)
        order = design.ranked(self.space.traits_of(candidates), self.space.traits_of(seen))
        chosen: Rows = candidates[order[:PASSED_OVER]]
        return chosen

    def _scored(self, model: Model, seen: Rows, evidence: Evidence, rng: np.random.Generator) -> tuple[Rows, Array]:
        """Return candidates, (m, p), and their promise, (m,)."""
        if self.space.listable and self.space.size.value <= _SCORED:
            candidates = unseen(rng.permutation(self.space.all_indices()), seen)
            return candidates, model.promise(candidates)
        best = seen[np.argsort(evidence.values, kind="stable")[:_REFINED]]
        # Where draws are simulated (their number is an estimate), they are dear.
        count = _SCORED if self.space.size.exact else _SIMULATED
        candidates = fresh(np.concatenate([self.space.sample_indices(rng, count), self._near(best)]), seen)
        if not len(candidates):
            candidates = self.drawn(rng, seen)
        promise = model.promise(candidates)
        for _ in range(_CLIMBS):
            top = np.argsort(-promise, kind="stable")[:_REFINED]
            found = fresh(self._near(candidates[top]), np.concatenate([seen, candidates]))
            if not len(found):
                break
            candidates = np.concatenate([candidates, found])
            reached = model.promise(found)
            climbed = reached.max() > promise[top[0]]
            promise = np.concatenate([promise, reached])
            if not climbed:
                break
        return candidates, promise

    def _near(self, rows: Rows) -> Rows:
        near = [found for one in self.space.decode(rows) for found in self.space.neighbours(one)]
        return self.space.indices(near)


def model_of(space: Space, seen: Rows, evidence: Evidence, guide: Guide = UNGUIDED) -> Model | None:
    """Return what `evidence` of the configurations `seen`, (n, p), makes one believe; None while that is nothing."""
    valued = evidence.valued
    if valued.sum() < _LEAST_VALUES:
        return None
    leaning = Leaning.fitted(guide, seen[valued], evidence.values[valued])
    leant = leaning.of(seen)
    values = evidence.beyond(leant).filled
    x = space.traits_of(seen)
    chosen = remembered(evidence.filled)
    surrogate = fit_censored(x[chosen], values[chosen], evidence.runs[chosen], evidence.censored[chosen])
    best = float((leant[valued] + surrogate.predict(x[valued])[0]).min())
    if evidence.pending.any():
        surrogate = surrogate.believing(x[evidence.pending])
    told = ~evidence.pending
    return Model(space, leaning, surrogate, x[told], evidence.measured[told].astype(float), best)


def remembered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of `values`, (n,), that a process is made of: all that are known, or the best and newest."""
    told = np.flatnonzero(~np.isnan(values))
    if len(told) <= _REMEMBERED:
        return told
    half = _REMEMBERED // 2
    best = told[np.argsort(values[told], kind="stable")[:half]]
    return np.union1d(best, told[-half:])
