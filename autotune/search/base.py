"""Proposer: what every sampler here does alike, whatever it searches by.

It proposes only valid configurations that no other trial has, the default one first; passes over what is known to show
nothing new; and changes no state, so that a proposal depends on the seed and the stored trials alone. It is an Optuna
sampler: `study.optimize` works with it, several threads included, where the objective asks for the parameters by
`suggest.suggest`.
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
from threadpoolctl import ThreadpoolController

from autotune.records.limit import Limits
from autotune.search.distributions import distributions_of
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.guidance.prior_mean import PriorMean
from autotune.storage.observation import Observation, observed
from autotune.storage.readable import ABANDONED
from spaces import Configuration, Space

Rows = NDArray[np.int32]

PASSED_OVER = 10
"""That many proposals that would show nothing new are passed over; to find that out may take a moment for each."""

# So many predicted configurations may be no better than the default before the others are given up.
_PATIENCE = 2

# Up to this size a uniform draw is one of the whole valid set.
_SHUFFLED = 2_000
# With more trials than that only a few are drawn at first.
_DRAWN = 300


class SpaceExhaustedError(Exception):
    """Every valid configuration has been proposed."""


@dataclass(frozen=True)
class History:
    """The other trials in the order of their numbers: value indexes `rows`, (n, p), and n `observations`.

    The parameters of `nameless` more trials are not known yet.
    """

    rows: Rows
    observations: Sequence[Observation]
    direction: StudyDirection
    nameless: int = 0

    @property
    def trials(self) -> int:
        """How many trials there are."""
        return len(self.rows) + self.nameless


class Proposer(BaseSampler):
    """Proposes from the valid set of a space, never the same configuration twice."""

    def __init__(self, space: Space, *, seed: int = 0) -> None:
        self.space = space
        self.seed = seed
        self._distributions = distributions_of(space)
        self._seen: Mapping[int, Observation] = {}
        self._shows_nothing: Callable[[Configuration], bool] | None = None
        self._limits: Limits = ()
        self._predicted: Rows = np.empty((0, len(space.parameters)), dtype=np.int32)
        # Threads share a sampler, and a trial is there before its parameters are stored: what was proposed meanwhile.
        self._lock = threading.RLock()
        self._threads = ThreadpoolController()
        self._proposed: dict[tuple[str, int], Mapping[str, Any]] = {}

    @property
    def limits(self) -> Limits:
        """The limits that a winner must keep."""
        return self._limits

    @property
    @abstractmethod
    def blind(self) -> int | None:
        """How many trials after the default do not depend on measurements; None: none does."""

    @abstractmethod
    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return at least one valid configuration that is not in `history`, (m, p), the best first.

        Raises:
            SpaceExhaustedError: there is none left.
        """

    def learn(
        self, seen: Mapping[int, Observation], shows_nothing: Callable[[Configuration], bool] | None = None
    ) -> None:
        """Believe these observations, by the trials' numbers, rather than what storage tells of those trials.

        `shows_nothing` tells which configurations have the same effect as a measured one.
        """
        self._seen = seen
        self._shows_nothing = shows_nothing

    def start_with(self, predicted: Sequence[Configuration]) -> None:
        """Propose these first, after the default: what a model of other machines predicts to be best here.

        When the first of them turn out to be no better than the default, the others are not tried.
        """
        self._predicted = self.space.indices(predicted)

    def guide_by(self, guide: PriorMean | None, *, leads: bool = False) -> None:
        """Heed what is known of configurations; a sampler that cannot, as this one, ignores it.

        Where it `leads`, the search begins with it, and not with trials that spread over the space.
        """
        del guide, leads

    def heed(self, hints: Rows) -> None:
        """Look also where configurations are like these hints, (k, p); a sampler that cannot ignores them."""
        del hints

    def follows_hints(self, history: History) -> bool:
        """Whether it proposes what is like the hints by itself, so that they need not be tried one by one."""
        del history
        return False

    def weigh_by(self, cores: HeldCores | None) -> None:
        """Weigh what a run may bring against the cores that it holds; a sampler that cannot ignores it."""
        del cores

    def keep(self, limits: Limits) -> None:
        """Prefer what keeps these limits; observations tell the values of their metrics, in this order."""
        self._limits = limits

    def history(self, study: Study) -> History:
        """Return what is known of all trials."""
        return self._history(study, self.counted(study.get_trials(deepcopy=False)))

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
        with self._lock:
            others = [other for other in study.get_trials(deepcopy=False) if self._counts(other, trial)]
            proposal = self.propose(self._history(study, others))
            self._proposed[study.study_name, trial.number] = proposal
            return proposal

    def propose(self, history: History) -> dict[str, Any]:
        """Return a valid configuration that is not in `history`.

        Raises:
            SpaceExhaustedError: there is none left.
        """
        if not len(history.rows):
            return dict(self.space.default())
        # One thread: the cores belong to the trials that run, and small matrices gain nothing by more.
        with self._lock, self._threads.limit(limits=1):
            # Not the trial's number: a trial that nobody can run has a number, too.
            rng = np.random.default_rng([self.seed, history.trials])
            predicted = self._trusted(history)
            return self._first_new(predicted if len(predicted) else self.ranked(history, rng), history, rng)

    def after_trial(self, study: Study, trial: FrozenTrial, state: TrialState, values: Sequence[float] | None) -> None:
        """Forget what was proposed: storage has it."""
        del state, values
        self._proposed.pop((study.study_name, trial.number), None)

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:  # noqa: ANN401  Optuna's own signature
        """Refuse: a parameter that the proposal left out is unset, and must not be given a value."""
        del study, trial, param_distribution
        msg = f"parameter {param_name!r} has no value in this trial; only proposed parameters may be suggested"
        raise ValueError(msg)

    def drawn(self, rng: np.random.Generator, seen: Rows) -> Rows:
        """Return valid configurations that are not in `seen`, (m, p), in random order.

        Raises:
            SpaceExhaustedError: there is none left.
        """
        if self.space.listable and self.space.size.value <= _SHUFFLED:
            return unseen(rng.permutation(self.space.all_indices()), seen)
        most = len(seen) + PASSED_OVER
        # `most` draws always hold a new one. After many trials a few draws mostly do.
        count = most if len(seen) <= _DRAWN else 2 * PASSED_OVER
        while count < most:
            rows = fresh(self.space.sample_indices(rng, count), seen)
            if len(rows):
                return rows
            count *= 8
        return unseen(self.space.sample_indices(rng, most), seen)

    def _trusted(self, history: History) -> Rows:
        """Return the predicted configurations that are to be tried yet; none once the first ones disappointed."""
        left = fresh(self._predicted, history.rows) if len(self._predicted) else self._predicted
        if not len(left):
            return left
        ended = [observation for observation in history.observations if not observation.pending]
        tried = min(len(ended) - 1, len(self._predicted) - len(left))
        if self._shows_nothing is not None:
            left = left[[not self._shows_nothing(self._decode(row)) for row in left]]
        return left if tried < _PATIENCE or _improved(ended, history.direction) else left[:0]

    def _counts(self, other: FrozenTrial, trial: FrozenTrial) -> bool:
        return other.number != trial.number and self._tells(other)

    def _tells(self, other: FrozenTrial) -> bool:
        if ABANDONED in other.user_attrs:
            return False
        # A trial that ended before it had parameters tells nothing.
        return bool(other.params) or not other.state.is_finished() or self._empty_is_valid

    @cached_property
    def _empty_is_valid(self) -> bool:
        return self.space.contains({})

    def counted(self, trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
        """Return those of `trials` that tell something, or will."""
        return [trial for trial in trials if self._tells(trial)]

    def _history(self, study: Study, others: Sequence[FrozenTrial]) -> History:
        rows = self.space.indices([self._parameters(study, other) for other in others])
        # A trial of another process may have no parameters yet, or only some of them.
        there = self.space.valid_indices(rows)
        observations = [
            self._seen.get(other.number) or observed(other) for other, known in zip(others, there, strict=True) if known
        ]
        return History(rows[there], observations, study.direction, int((~there).sum()))

    def _parameters(self, study: Study, other: FrozenTrial) -> Mapping[str, Any]:
        if other.state.is_finished():
            return other.params
        proposed = self._proposed.get((study.study_name, other.number), {})
        return proposed if len(proposed) > len(other.params) else other.params

    def _first_new(self, candidates: Rows, history: History, rng: np.random.Generator) -> dict[str, Any]:
        """Return the first that may show something new; if none of the first few does, one from anywhere."""
        return self._new(candidates) or self._new(self.drawn(rng, history.rows)) or self._decode(candidates[0])

    def _new(self, candidates: Rows) -> dict[str, Any] | None:
        configurations = map(self._decode, candidates[:PASSED_OVER])
        if self._shows_nothing is None:
            return next(configurations)
        return next((each for each in configurations if not self._shows_nothing(each)), None)

    def _decode(self, row: Rows) -> dict[str, Any]:
        return dict(self.space.decode(row[None, :])[0])


def _improved(ended: Sequence[Observation], direction: StudyDirection) -> bool:
    """Whether any observation is better than the first, that of the default configuration; a failure is worst."""
    sign = -1.0 if direction == StudyDirection.MAXIMIZE else 1.0
    values = [np.inf if observation.value is None else sign * observation.value for observation in ended]
    return bool(min(values[1:], default=np.inf) < values[0])


def fresh(rows: Rows, seen: Rows) -> Rows:
    """Return each of `rows`, (m, p), that is not in `seen`, (n, p), once, in their order."""
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
        SpaceExhaustedError: all of them are.
    """
    rows = fresh(candidates, seen)
    if not len(rows):
        msg = "all valid configurations have been proposed"
        raise SpaceExhaustedError(msg)
    return rows
