"""The sampler over the valid set: an Optuna sampler that proposes only valid configurations not measured before.

The first proposal is the default configuration, the next few are uniform draws from the valid set, the rest maximise
the expected improvement of a Gaussian process over the valid set itself where it is small, or over a sample of it and
the neighbours of the best where it is not. A value of several runs weighs as much; a capped trial counts as somewhere
above its bound; a failed one as a standard deviation worse than the worst, and near it an improvement is expected only
as far as a run is expected to work; running trials are believed at the model's mean (kriging believer: Ginsbourger, Le
Riche & Carraro 2010). What is known to be the same in effect as a measured configuration is passed over.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial

from autotune.search.distributions import distributions_of
from autotune.search.feasibility import chance_to_work
from autotune.search.observation import ABANDONED, Observation, observed
from autotune.search.surrogate import expected_improvement, fit, fit_censored
from spaces import Configuration, Space

Rows = NDArray[np.int32]

# All of a valid set up to this size is scored; of a larger one a sample of this size.
_SCORED = 2_000
# Neighbours of that many of the best are scored too, so that the search can refine where sampling is thin.
_REFINED = 5
# That many proposals that would show nothing new are passed over; to find that out may take a moment for each.
_PASSED_OVER = 10
# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300


class SpaceExhaustedError(Exception):
    """Every valid configuration has been proposed."""


@dataclass(frozen=True)
class _Evidence:
    """Observations as arrays, all (n,): values to minimise, +inf for a failed trial, NaN for a pending one."""

    values: NDArray[np.float64]
    runs: NDArray[np.float64]
    censored: NDArray[np.bool_]

    @property
    def pending(self) -> NDArray[np.bool_]:
        return np.isnan(self.values)


class ValidSetSampler(BaseSampler):
    """Proposes from the valid set of a space, never the same configuration twice.

    The proposal depends on the seed and the stored trials alone: suggesting changes no state, so an interrupted study
    goes on as if it had not been.
    """

    def __init__(self, space: Space, *, seed: int = 0, startup: int = 8, model: bool = True) -> None:
        """Search `space`: `startup` trials at random, then guided by a model, or at random for ever without one."""
        self._space = space
        self._seed = seed
        self._startup = startup
        self._model = model
        self._distributions = distributions_of(space)
        self._seen: Mapping[int, Observation] = {}
        self._shows_nothing: Callable[[Configuration], bool] | None = None

    def learn(
        self, seen: Mapping[int, Observation], shows_nothing: Callable[[Configuration], bool] | None = None
    ) -> None:
        """Believe these observations, by the trials' numbers, rather than what storage tells of those trials.

        `shows_nothing` tells which configurations are the same in effect as a measured one.
        """
        self._seen = seen
        self._shows_nothing = shows_nothing

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the whole space: every parameter is sampled together with all others."""
        del study, trial
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return a valid configuration that no other trial has.

        Raises:
            SpaceExhaustedError: there is none left.
        """
        del search_space
        others = [
            other
            for other in study.get_trials(deepcopy=False)
            if other.number != trial.number and ABANDONED not in other.user_attrs
        ]
        if not others:
            return dict(self._space.default())
        # Not the number: a trial that was killed before it was launched has one, too.
        rng = np.random.default_rng([self._seed, len(others)])
        seen = self._space.indices([t.params for t in others])
        if not self._model or len(others) <= self._startup:
            return self._first_new(self._unseen(self._drawn(rng, len(others) + _PASSED_OVER), seen))
        evidence = _evidence([self._seen.get(t.number) or observed(t) for t in others], study.direction, rng)
        candidates = self._unseen(self._candidates(rng, seen, evidence), seen)
        return self._first_new(candidates[self._best(candidates, seen, evidence)])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  Optuna's own signature
        """Refuse: a parameter that the proposal left out is unset, and must not be given a value."""
        del study, trial, param_distribution
        msg = f"parameter {param_name!r} has no value in this trial; only proposed parameters may be suggested"
        raise ValueError(msg)

    def _first_new(self, candidates: Rows) -> dict[str, Any]:
        """Return the first that may show something new; if none of the first few does, the first."""
        first = self._decode(candidates[0])
        if self._shows_nothing is None:
            return first
        others = (self._decode(row) for row in candidates[1:_PASSED_OVER])
        return next((found for found in chain([first], others) if not self._shows_nothing(found)), first)

    def _decode(self, row: Rows) -> dict[str, Any]:
        return dict(self._space.decode(row[None, :])[0])

    def _drawn(self, rng: np.random.Generator, n: int) -> Rows:
        if self._space.listable and self._space.size.value <= _SCORED:
            return rng.permutation(self._space.all_indices())
        return self._space.sample_indices(rng, n)

    def _candidates(self, rng: np.random.Generator, seen: Rows, evidence: _Evidence) -> Rows:
        drawn = self._drawn(rng, _SCORED)
        if len(drawn) == self._space.size.value:
            return drawn
        best = self._space.decode(seen[np.argsort(evidence.values)[:_REFINED]])
        near: list[Configuration] = [n for configuration in best for n in self._space.neighbours(configuration)]
        return np.concatenate([drawn, self._space.indices(near)]) if near else drawn

    def _unseen(self, candidates: Rows, seen: Rows) -> Rows:
        known = {row.tobytes() for row in np.ascontiguousarray(seen)}
        fresh = [row.tobytes() not in known for row in np.ascontiguousarray(candidates)]
        if not any(fresh):
            msg = f"all {self._space.size.value} valid configurations have been proposed"
            raise SpaceExhaustedError(msg)
        unseen: Rows = candidates[np.array(fresh)]
        return unseen

    def _best(self, candidates: Rows, seen: Rows, evidence: _Evidence) -> NDArray[np.intp]:
        """Return the places of the best candidates, the best first."""
        measured = np.isfinite(evidence.values)
        if (measured & ~evidence.censored).sum() < 2:
            return np.arange(min(_PASSED_OVER, len(candidates)))
        # A failure counts as bad, or the process would be curious about it.
        worst = evidence.values[measured].max() + evidence.values[measured].std()
        values = np.where(np.isposinf(evidence.values), worst, evidence.values)
        x = self._space.encode_indices(seen)
        rows = self._space.encode_indices(candidates)
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
        return np.argsort(-promise, kind="stable")[:_PASSED_OVER]


def _remembered(values: NDArray[np.float64]) -> NDArray[np.int64]:
    told = np.flatnonzero(~np.isnan(values))
    if len(told) <= _REMEMBERED:
        return told
    half = _REMEMBERED // 2
    best = told[np.argsort(values[told], kind="stable")[:half]]
    return np.union1d(best, told[-half:])


def _evidence(observations: Sequence[Observation], direction: StudyDirection, rng: np.random.Generator) -> _Evidence:
    """Return observations as arrays.

    Times and rates are compared by ratio, so positive values enter the model by their logarithm. Of a trade-off both
    metrics enter, with weights that change from proposal to proposal.
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = np.array([_value(observation) for observation in observations])
    measured = np.isfinite(values)
    if (values[measured] > 0).all():
        values[measured] = np.log(values[measured])
    values[measured] *= sign
    second = np.array([np.nan if observation.second is None else observation.second for observation in observations])
    both = measured & np.isfinite(second)
    if both.any():
        values[both] = _weighted(values[both], second[both], float(rng.uniform()))
    return _Evidence(
        values,
        np.array([float(observation.runs) for observation in observations]),
        np.array([observation.bound is not None for observation in observations]),
    )


def _weighted(first: NDArray[np.float64], second: NDArray[np.float64], weight: float) -> NDArray[np.float64]:
    """Return one value for two, all (n,): the augmented Chebyshev sum of ParEGO (Knowles 2006)."""
    scaled = [(values - values.min()) / (float(np.ptp(values)) or 1.0) for values in (first, second)]
    parts = weight * scaled[0], (1.0 - weight) * scaled[1]
    combined: NDArray[np.float64] = np.maximum(*parts) + 0.05 * (parts[0] + parts[1])
    return combined


def _value(observation: Observation) -> float:
    if observation.pending:
        return np.nan
    known = observation.bound if observation.value is None else observation.value
    return np.inf if known is None else known
