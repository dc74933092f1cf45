"""The sampler over the valid set: an Optuna sampler that proposes only valid configurations not measured before.

The first proposal is the default configuration, the next few are uniform draws from the valid set, the rest maximise
the expected improvement of a Gaussian process over the valid set itself where it is small, or over a sample of it and
the neighbours of the best where it is not. Failed trials count as a standard deviation worse than the worst
measurement, so that a failing region is avoided without being closed; running ones are believed at the model's mean
(kriging believer: Ginsbourger, Le Riche & Carraro 2010).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from autotune.search.distributions import distributions_of
from autotune.search.surrogate import expected_improvement, fit
from spaces import Configuration, Space

Rows = NDArray[np.int32]

# All of a valid set up to this size is scored; of a larger one a sample of this size.
_SCORED = 2_000
# Neighbours of that many of the best are scored too, so that the search can refine where sampling is thin.
_REFINED = 5
# A process over n points costs n^3; the best and the newest this many tell nearly as much as all.
_REMEMBERED = 300


# Marks a trial that was asked for but never launched: its configuration was not measured.
ABANDONED = "abandoned"


class SpaceExhaustedError(Exception):
    """Every valid configuration has been proposed."""


class ValidSetSampler(BaseSampler):
    """Proposes from the valid set of a space, never the same configuration twice.

    The proposal depends on the seed, the trial's number and the stored trials alone: suggesting changes no state, so
    an interrupted study goes on as if it had not been.
    """

    def __init__(self, space: Space, *, seed: int = 0, startup: int = 8, model: bool = True) -> None:
        """Search `space`: `startup` trials at random, then guided by a model, or at random for ever without one."""
        self._space = space
        self._seed = seed
        self._startup = startup
        self._model = model
        self._distributions = distributions_of(space)

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
        rng = np.random.default_rng([self._seed, trial.number])
        seen = self._space.indices([t.params for t in others])
        if not self._model or len(others) <= self._startup:
            return self._decode(self._unseen(self._drawn(rng, len(others) + 1), seen)[0])
        values = _values(others, study.direction)
        candidates = self._unseen(self._candidates(rng, seen, values), seen)
        return self._decode(candidates[self._best(candidates, seen, values)])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  Optuna's own signature
        """Refuse: a parameter that the proposal left out is unset, and must not be given a value."""
        del study, trial, param_distribution
        msg = f"parameter {param_name!r} has no value in this trial; only proposed parameters may be suggested"
        raise ValueError(msg)

    def _decode(self, row: Rows) -> dict[str, Any]:
        return dict(self._space.decode(row[None, :])[0])

    def _drawn(self, rng: np.random.Generator, n: int) -> Rows:
        if self._space.listable and self._space.size.value <= _SCORED:
            return rng.permutation(self._space.all_indices())
        return self._space.sample_indices(rng, n)

    def _candidates(self, rng: np.random.Generator, seen: Rows, values: NDArray[np.float64]) -> Rows:
        drawn = self._drawn(rng, _SCORED)
        if len(drawn) == self._space.size.value:
            return drawn
        best = self._space.decode(seen[np.argsort(values)[:_REFINED]])
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

    def _best(self, candidates: Rows, seen: Rows, values: NDArray[np.float64]) -> int:
        known = np.isfinite(values)
        if known.sum() < 2:
            return 0
        worst = values[known].max() + values[known].std()
        pending = np.isnan(values)
        targets = np.where(np.isposinf(values), worst, values)
        chosen = _remembered(targets, pending)
        x = self._space.encode_indices(seen)
        surrogate = fit(x[chosen], targets[chosen])
        if pending.any():
            believed, _ = surrogate.predict(x[pending])
            surrogate = fit(np.concatenate([x[chosen], x[pending]]), np.concatenate([targets[chosen], believed]))
        mean, deviation = surrogate.predict(self._space.encode_indices(candidates))
        return int(np.argmax(expected_improvement(mean, deviation, float(values[known].min()))))


def _remembered(targets: NDArray[np.float64], pending: NDArray[np.bool_]) -> NDArray[np.int64]:
    told = np.flatnonzero(~pending)
    if len(told) <= _REMEMBERED:
        return told
    half = _REMEMBERED // 2
    best = told[np.argsort(targets[told], kind="stable")[:half]]
    return np.union1d(best, told[-half:])


def _values(trials: Sequence[FrozenTrial], direction: StudyDirection) -> NDArray[np.float64]:
    """Return (n,) values to minimise: +inf for a failed trial, NaN for one that is running.

    Times and rates are compared by ratio, so positive values enter the model by their logarithm.
    """
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = np.array([_value(trial) for trial in trials])
    measured = np.isfinite(values)
    if (values[measured] > 0).all():
        values[measured] = np.log(values[measured])
    values[measured] *= sign
    return values


def _value(trial: FrozenTrial) -> float:
    match trial.state:
        case TrialState.COMPLETE:
            return float(trial.values[0]) if trial.values else np.inf
        case TrialState.RUNNING | TrialState.WAITING:
            return np.nan
        case _:
            return np.inf
