"""The base of all samplers here.

A sampler proposes only valid configurations that no other trial has, the default first, and passes over those that are
known to show nothing new. It keeps no state between proposals, so a proposal depends only on the seed and the stored
trials. Each is also an Optuna sampler: `study.optimize` works with it, even with several threads, if the objective gets
the parameters through `suggest.suggest`.
"""

import threading
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from optuna.distributions import BaseDistribution
from optuna.samplers import BaseSampler
from optuna.study import Study, StudyDirection
from optuna.trial import FrozenTrial, TrialState

from autotune.records.limit import Limits
from autotune.search.distributions import distributions_of
from autotune.search.guidance.earlier_values import EarlierValues
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import PriorMean
from autotune.statistics.one_thread import one_thread
from autotune.storage.observation import Observation, observation_of
from autotune.storage.readable_study import ABANDONED
from spaces import Configuration, Space

Rows = NDArray[np.int32]

PASSED_OVER = 10
"""The most proposals that are passed over because they would show nothing new; each check may take a moment."""

# The number of predicted configurations that may fail to beat the default before the others are dropped.
_PATIENCE = 2

# A valid set up to this size is shuffled as a whole for a uniform draw.
_SHUFFLED = 2_000
# With more trials than this, draw only a few configurations at first.
_DRAWN = 300


class SpaceExhaustedError(Exception):
    """Every valid configuration has been proposed."""


@dataclass(frozen=True)
class History:
    """The known trials of a study, in the order of their numbers.

    Attributes:
        rows: Their configurations, value indexes (n, p).
        observations: Their observations, n of them.
        direction: Whether the metric is minimised or maximised.
        nameless: The number of further trials whose parameters are not stored yet.
    """

    rows: Rows
    observations: Sequence[Observation]
    direction: StudyDirection
    nameless: int = 0

    @property
    def trials(self) -> int:
        """The number of trials, including those without parameters."""
        return len(self.rows) + self.nameless


class Proposer(BaseSampler):
    """Proposes valid configurations of a space, each at most once."""

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self.space = space
        self.seed = seed
        self._distributions = distributions_of(space)
        self._seen: Mapping[int, Observation] = {}
        self._shows_nothing: Callable[[Configuration], bool] | None = None
        self._limits: Limits = ()
        self._predicted: Rows = np.empty((0, len(space.parameters)), dtype=np.int32)
        # Threads share a sampler, and a trial exists before its parameters are stored, so remember what was proposed.
        self._lock = threading.RLock()
        self._proposed: dict[tuple[str, int], Mapping[str, Any]] = {}

    @property
    def limits(self) -> Limits:
        """The limits that a winner must keep."""
        return self._limits

    @property
    @abstractmethod
    def startup_trials(self) -> int | None:
        """The number of trials after the default that do not depend on measurements; None if no trial does."""

    @abstractmethod
    def rank(self, history: History, rng: np.random.Generator) -> Rows:
        """Return valid configurations that are not in `history`, (m, p) with m > 0, the best first.

        Raises:
            SpaceExhaustedError: all have been proposed.
        """

    def learn(
        self, seen: Mapping[int, Observation], shows_nothing: Callable[[Configuration], bool] | None = None
    ) -> None:
        """Use these observations in place of the stored ones.

        Args:
            seen: The observations by trial number.
            shows_nothing: Returns whether a configuration has the same effect as a measured one.
        """
        self._seen = seen
        self._shows_nothing = shows_nothing

    def start_with(self, predicted: Sequence[Configuration]) -> None:
        """Propose these configurations after the default: the best ones as predicted from other machines.

        If the first of them do not beat the default, the others are not tried.
        """
        self._predicted = self.space.indices(predicted)

    def set_prior_mean(self, prior: PriorMean | None, *, leads: bool = False) -> None:
        """Set the prior mean of the model; samplers without a model ignore it.

        Args:
            prior: Knowledge about the configurations; None for none.
            leads: Whether the search begins with it, instead of with trials that spread over the space.
        """
        del prior, leads

    def set_earlier_values(self, earlier: EarlierValues) -> None:
        """Learn also from the values of an earlier study; samplers without a model ignore them."""
        del earlier

    def set_hints(self, hints: Rows) -> None:
        """Search also near these hints, value indexes (k, p); samplers without a model ignore them."""
        del hints

    def follows_hints(self, history: History) -> bool:
        """Return whether the search itself uses the hints, so that they need not be tried one by one."""
        del history
        return False

    def set_held_cores(self, cores: HeldCores | None) -> None:
        """Weigh the expected improvement of a run against the cores that it holds; some samplers ignore this."""
        del cores

    def set_limits(self, limits: Limits) -> None:
        """Prefer configurations that keep these limits; observations have the limited metrics in this order."""
        self._limits = limits

    def history(self, study: Study) -> History:
        """Return the configurations and observations of all trials."""
        return self._history(study, self.informative_trials(study.get_trials(deepcopy=False)))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """Return the whole space, since all parameters are sampled together."""
        del study, trial
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Return a valid configuration that no other trial has.

        Raises:
            SpaceExhaustedError: all have been proposed.
        """
        del search_space
        with self._lock:
            others = [other for other in study.get_trials(deepcopy=False) if self._is_informative_other(other, trial)]
            proposal = self.propose(self._history(study, others))
            self._proposed[study.study_name, trial.number] = proposal
            return proposal

    def propose(self, history: History) -> dict[str, Any]:
        """Return a valid configuration that is not in `history`.

        Raises:
            SpaceExhaustedError: all have been proposed.
        """
        if not len(history.rows):
            return dict(self.space.default())
        with self._lock, one_thread():
            # Seed with the number of known trials, not with the trial's number, which abandoned trials use up too.
            rng = np.random.default_rng([self.seed, history.trials])
            predicted = self._predictions_left(history)
            return self._first_new(predicted if len(predicted) else self.rank(history, rng), history, rng)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Forget the proposal, which is in storage now."""
        del state, values
        self._proposed.pop((study.study_name, trial.number), None)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  Optuna's own signature
        """Refuse, since a parameter that the proposal leaves out is unset and must not get a value."""
        del study, trial, param_distribution
        msg = f"parameter {param_name!r} has no value in this trial; only proposed parameters may be suggested"
        raise ValueError(msg)

    def draw(self, rng: np.random.Generator, seen: Rows) -> Rows:
        """Return valid configurations that are not in `seen`, (m, p), in random order.

        Raises:
            SpaceExhaustedError: all have been proposed.
        """
        if self.space.listable and self.space.size.value <= _SHUFFLED:
            return unseen(rng.permutation(self.space.all_indices()), seen)
        most = len(seen) + PASSED_OVER
        # `most` draws always contain a new configuration. After many trials even a few draws usually do.
        count = most if len(seen) <= _DRAWN else 2 * PASSED_OVER
        while count < most:
            rows = fresh(self.space.sample_indices(rng, count), seen)
            if len(rows):
                return rows
            count *= 8
        return unseen(self.space.sample_indices(rng, most), seen)

    def _predictions_left(self, history: History) -> Rows:
        """Return the predicted configurations still to be tried; none once the first ones have failed to improve."""
        left = fresh(self._predicted, history.rows) if len(self._predicted) else self._predicted
        if not len(left):
            return left
        ended = [observation for observation in history.observations if not observation.pending]
        tried = min(len(ended) - 1, len(self._predicted) - len(left))
        if self._shows_nothing is not None:
            left = left[[not self._shows_nothing(self._decode(row)) for row in left]]
        return left if tried < _PATIENCE or _has_improved(ended, history.direction) else left[:0]

    def _is_informative_other(self, other: FrozenTrial, trial: FrozenTrial) -> bool:
        return other.number != trial.number and self._is_informative(other)

    def _is_informative(self, other: FrozenTrial) -> bool:
        if ABANDONED in other.user_attrs:
            return False
        # A trial that ended before it had parameters gives no information.
        return bool(other.params) or not other.state.is_finished() or self._empty_is_valid

    @cached_property
    def _empty_is_valid(self) -> bool:
        return self.space.contains({})

    def informative_trials(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return the trials that give information, or will when they end."""
        return [trial for trial in trials if self._is_informative(trial)]

    def _history(self, study: Study, others: Sequence[FrozenTrial]) -> History:
        rows = self.space.indices([self._parameters(study, other) for other in others])
        # A trial of another process may have none of its parameters yet, or only some.
        there = self.space.valid_indices(rows)
        observations = [
            self._seen.get(other.number) or observation_of(other)
            for other, known in zip(others, there, strict=True)
            if known
        ]
        return History(rows[there], observations, study.direction, int((~there).sum()))

    def _parameters(self, study: Study, other: FrozenTrial) -> Mapping[str, Any]:
        if other.state.is_finished():
            return other.params
        proposed = self._proposed.get((study.study_name, other.number), {})
        return proposed if len(proposed) > len(other.params) else other.params

    def _first_new(self, candidates: Rows, history: History, rng: np.random.Generator) -> dict[str, Any]:
        """Return the first candidate that may show something new; if the first few do not, one drawn at random."""
        return self._new(candidates) or self._new(self.draw(rng, history.rows)) or self._decode(candidates[0])

    def _new(self, candidates: Rows) -> dict[str, Any] | None:
        configurations = map(self._decode, candidates[:PASSED_OVER])
        if self._shows_nothing is None:
            return next(configurations)
        return next((each for each in configurations if not self._shows_nothing(each)), None)

    def _decode(self, row: Rows) -> dict[str, Any]:
        return dict(self.space.decode(row[None, :])[0])


def _has_improved(ended: Sequence[Observation], direction: StudyDirection) -> bool:
    """Return whether any observation is better than the first, that of the default; a failure counts as worst."""
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = [np.inf if observation.value is None else sign * observation.value for observation in ended]
    return bool(min(values[1:], default=np.inf) < values[0])


def fresh(rows: Rows, seen: Rows) -> Rows:
    """Return the distinct `rows`, (m, p), that are not in `seen`, (n, p), in their order."""
    known = set(keys(seen))
    first = {key: position for position, key in enumerate(keys(rows))}
    new: Rows = rows[[position for key, position in first.items() if key not in known]]
    return new


def keys(rows: Rows) -> list[bytes]:
    """Return the bytes of each of `rows`, (n, p)."""
    rows = np.ascontiguousarray(rows)
    if not rows.size:
        return [b""] * len(rows)
    return cast("list[bytes]", rows.view(np.dtype((np.void, rows.itemsize * rows.shape[1]))).ravel().tolist())


def unseen(candidates: Rows, seen: Rows) -> Rows:
    """Return the `candidates`, (m, p), that are not in `seen`, (n, p), in their order.

    Raises:
        SpaceExhaustedError: all of them are in `seen`.
    """
    rows = fresh(candidates, seen)
    if not len(rows):
        msg = "all valid configurations have been proposed"
        raise SpaceExhaustedError(msg)
    return rows
