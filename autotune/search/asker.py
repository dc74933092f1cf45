"""Ask a sampler for the next trials of a study, and store each trial before it runs."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import numpy as np
import optuna

from autotune.records.expected_gain import ExpectedGain
from autotune.records.limit import Limits
from autotune.records.study import TrialRecord
from autotune.search.base import History, Proposer, Rows, SpaceExhaustedError, fresh, keys
from autotune.search.expected_gain import expected_gain_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.hints import hints_of, may_try
from autotune.search.training_data import training_data_of
from autotune.search.trial_index import TrialIndex
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from spaces import Configuration, Space

# The time for which a request for several proposals may block other requests.
_MOMENT_S = 0.05
_RUNNING = Observation(pending=True)
# The interval between two looks for new hints: many programs may ask for trials within it.
_HINTS_S = 1.0


class Asker:
    """Proposes and stores the new trials of a study."""

    def __init__(self, store: StudyStore, sampler: Proposer) -> None:
        self.store = store
        self.sampler = sampler
        self._index: TrialIndex | None = None
        self._hints: Sequence[Configuration] = ()
        self._hints_due = 0.0

    @property
    def space(self) -> Space:
        """The space of the proposed configurations."""
        return self.sampler.space

    def ask(
        self,
        seen: Mapping[int, Observation] | None = None,
        shows_nothing: Callable[[Configuration], bool] | None = None,
    ) -> TrialRecord | None:
        """Propose a new trial, as in `ask_all`, and store it; None if all configurations have been proposed."""
        return next(iter(self.ask_all(1, seen, shows_nothing)), None)

    def ask_all(
        self,
        most: int,
        seen: Mapping[int, Observation] | None = None,
        shows_nothing: Callable[[Configuration], bool] | None = None,
    ) -> list[TrialRecord]:
        """Propose new trials and store them together; none if all configurations have been proposed.

        Args:
            most: The most trials. There may be fewer, since proposing stops after a moment.
            seen: The current observations by trial number. Storage has only those of the time when a trial was settled.
            shows_nothing: Returns whether a configuration has the same effect as a measured one.
        """
        if seen is not None:
            self.sampler.learn(seen, shows_nothing)
        with self.store.as_optuna():
            index, history = self.store.patiently(lambda: self._read(seen or {}))
            configurations = self._propose(history, most, shows_nothing)
            numbers = self.store.add_trials(configurations, index.distributions)
            trials = [TrialRecord(*trial) for trial in zip(numbers, configurations, strict=True)]
            for trial in trials:
                index.add(trial.number, trial.configuration)
            return trials

    def _propose(
        self, history: History, most: int, shows_nothing: Callable[[Configuration], bool] | None
    ) -> list[Configuration]:
        """Return the next proposals; each one treats those before it as running."""
        until, proposed = time.monotonic() + _MOMENT_S, list[Configuration]()
        with suppress(SpaceExhaustedError):
            while len(proposed) < most and not (proposed and time.monotonic() >= until):
                if proposed:
                    history = _with_running(history, self.space.indices(proposed[-1:]))
                proposed.append(self._next_hint(history, shows_nothing) or self.sampler.propose(history))
        return proposed

    def _next_hint(
        self, history: History, shows_nothing: Callable[[Configuration], bool] | None
    ) -> Configuration | None:
        """Return the hint to try now, if any; the default configuration is tried before all hints."""
        if not len(history.rows):
            return None
        if time.monotonic() >= self._hints_due:
            self._hints = [hint.configuration for hint in hints_of(self.store)]
            self.sampler.set_hints(valid_hints(self._hints, self.space))
            self._hints_due = time.monotonic() + _HINTS_S
        if not self._hints or self.sampler.follows_hints(history):
            return None
        waiting = self.space.decode(worth_trying(self._hints, self.space, history, self.sampler.limits))
        return next((hint for hint in waiting if shows_nothing is None or not shows_nothing(hint)), None)

    def _read(self, seen: Mapping[int, Observation]) -> tuple[TrialIndex, History]:
        with self.store.as_optuna() as study:
            index = self._trial_index(study)
            return index, index.history(seen) or self.sampler.history(study)

    def prospect(self, seen: Mapping[int, Observation], noise: float) -> ExpectedGain | None:
        """Return the expected gain of the next trials; None if the sampler cannot estimate it.

        Args:
            seen: The current observations, as for `ask`.
            noise: The relative standard deviation of runs of one configuration.
        """
        if not isinstance(self.sampler, ValidSetSampler):
            return None
        self.sampler.learn(seen)
        with self.store.as_optuna() as study:
            try:
                return expected_gain_of(self.sampler, self.sampler.history(study), noise)
            except SpaceExhaustedError:
                return None

    def forget(self) -> None:
        """Read the trials again before the next proposal, since they may have changed."""
        self._index = None

    def _trial_index(self, study: optuna.Study) -> TrialIndex:
        if self._index is None:
            trials = study.get_trials(deepcopy=False)
            self._index = TrialIndex.of(self.space, study.direction, self.sampler.informative_trials(trials))
        return self._index


def _with_running(history: History, rows: Rows) -> History:
    """Return the history with `rows`, (m, p), as running trials."""
    known = np.concatenate([history.rows, rows]) if len(history.rows) else rows
    return replace(history, rows=known, observations=[*history.observations, *[_RUNNING] * len(rows)])


def valid_hints(hints: Sequence[Configuration], space: Space) -> Rows:
    """Return the valid hints as value indexes, (m, p), in their order."""
    rows = space.indices(hints)
    valid: Rows = rows[space.valid_indices(rows)]
    return valid


def worth_trying(hints: Sequence[Configuration], space: Space, history: History, limits: Limits = ()) -> Rows:
    """Return the hints that may be tried now, (m, p), oldest first; none if earlier hints have not paid."""
    rows = valid_hints(hints, space)
    waiting = fresh(rows, history.rows)
    if not len(waiting):
        return waiting
    known = set(keys(rows))
    hinted = np.array([key in known for key in keys(history.rows)], dtype=np.bool_)
    evidence = training_data_of(history.observations, history.direction, np.random.default_rng(0), limits)
    costs = np.where(evidence.feasible, evidence.values, np.inf)
    return waiting if may_try(hinted, costs, history.trials) else waiting[:0]
