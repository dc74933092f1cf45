"""Sameness: configurations that would do what a measured one did, by the program's own words, need not be run."""

from collections.abc import Iterable
from dataclasses import dataclass

from autotune.records import TrialRecord
from objectives.base import Alike
from spaces import Configuration

# A program may say of one run that a parameter had no effect for a reason of that run.
_INERT_AFTER = 2


@dataclass(frozen=True)
class Sameness:
    """What is known of configurations that are the same in effect; `alike` is the objective's word, if it has one."""

    trials: tuple[TrialRecord, ...]
    inert: frozenset[str]
    alike: Alike | None = None

    @classmethod
    def of(cls, trials: Iterable[TrialRecord], alike: Alike | None) -> "Sameness":
        """Learn from what ran."""
        measured = tuple(trial for trial in trials if any(outcome.complete for outcome in trial.outcomes))
        return cls(measured, inert(measured), alike)

    def twin(self, configuration: Configuration) -> TrialRecord | None:
        """Return a measured trial that a configuration is the same as in effect; None if it may show something new."""
        reduced = self._reduced(configuration)
        return next((trial for trial in self.trials if self._same(reduced, trial)), None)

    def _same(self, reduced: Configuration, trial: TrialRecord) -> bool:
        measured = self._reduced(trial.configuration)
        if reduced == measured:
            return True
        details = next(outcome.details for outcome in trial.outcomes if outcome.complete)
        return self.alike is not None and self.alike(reduced, measured, details)

    def _reduced(self, configuration: Configuration) -> Configuration:
        return {name: value for name, value in configuration.items() if name not in self.inert}


def inert(trials: Iterable[TrialRecord]) -> frozenset[str]:
    """Return the parameters of which the program said, in every trial that set them, that they had no effect."""
    said: dict[str, list[bool]] = {}
    for trial in trials:
        unused = {name for outcome in trial.outcomes for name in outcome.unused}
        for name in trial.configuration:
            said.setdefault(name, []).append(name in unused)
    return frozenset(name for name, words in said.items() if len(words) >= _INERT_AFTER and all(words))
