"""Asker: asks a sampler for the next trial of a study, and stores that trial before anybody runs it."""

from collections.abc import Callable, Mapping

import optuna

from autotune.records.expected_gain import ExpectedGain
from autotune.records.study import TrialRecord
from autotune.search.base import History, Proposer, SpaceExhaustedError
from autotune.search.expected_gain import expected_gain_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.trial_index import TrialIndex
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from spaces import Configuration, Space


class Asker:
    """Proposes the new trials of the study in `store`, by a `sampler` of its space."""

    def __init__(self, store: StudyStore, sampler: Proposer) -> None:
        self.store = store
        self.sampler = sampler
        self._roster: TrialIndex | None = None

    @property
    def space(self) -> Space:
        """The space that configurations are proposed from."""
        return self.sampler.space

    def ask(
        self,
        seen: Mapping[int, Observation] | None = None,
        shows_nothing: Callable[[Configuration], bool] | None = None,
    ) -> TrialRecord | None:
        """Propose a new trial and store it; None when every valid configuration has been proposed.

        `seen` is what is known of the trials by now, by number: more than what was stored when each was settled;
        `shows_nothing` tells which configurations have the same effect as a measured one.
        """
        if seen is not None:
            self.sampler.learn(seen, shows_nothing)
        with self.store.as_optuna():
            index, history = self.store.patiently(lambda: self._read(seen or {}))
            try:
                configuration = self.sampler.propose(history)
            except SpaceExhaustedError:
                return None
            number = self.store.add_trial(configuration, index.distributions)
            index.add(number, configuration)
            return TrialRecord(number, configuration)

    def _read(self, seen: Mapping[int, Observation]) -> tuple[TrialIndex, History]:
        with self.store.as_optuna() as study:
            index = self._known(study)
            return index, index.history(seen) or self.sampler.history(study)

    def prospect(self, seen: Mapping[int, Observation], noise: float) -> ExpectedGain | None:
        """Return what the next trials would gain, for `seen` as for `ask`; None where the sampler does not know.

        `noise` is the relative standard deviation of runs of one configuration.
        """
        if not isinstance(self.sampler, ValidSetSampler):
            return None
        self.sampler.learn(seen)
        with self.store.as_optuna() as study:
            try:
                return expected_gain_of(self.sampler, self.sampler.history(study), noise)
            except SpaceExhaustedError:
                return None

    def moved(self) -> bool:
        """Whether another coordinator has proposed a trial, or stored a run, since this one has read them."""
        known = self._roster.trials if self._roster is not None else None
        return known != self.store.count_trials() or self.store.has_unread_runs()

    def forget(self) -> None:
        """Read the trials anew before the next is proposed: others have changed them."""
        self._roster = None

    def _known(self, study: optuna.Study) -> TrialIndex:
        if self._roster is None:
            trials = study.get_trials(deepcopy=False)
            self._roster = TrialIndex.of(self.space, study.direction, trials, self.sampler.counted(trials))
        return self._roster
