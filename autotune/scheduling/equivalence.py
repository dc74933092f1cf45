"""Configurations that need no run: the same in effect as a measured one, or certain to run out of memory.

Two configurations are the same in effect if the program's output says so, for instance that it ignored a parameter.
"""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from autotune.formatting import configuration_text
from autotune.records.study import TrialRecord
from autotune.scheduling.memory_bounds import MemoryBounds
from objectives.base import Alike, MemoryNeed
from spaces import Configuration

# Trials that must report a parameter as unused: a single run may have ignored it for a reason of its own.
_INERT_AFTER = 2
# Messages about a lack of memory; more would repeat what the reader knows.
_MOST_REPORTED = 5


class Equivalence:
    """Which configurations have the same effect as a measured one.

    Args:
        alike: The objective's own comparison of two configurations, if it has one.
        memory: The objective's estimate of the memory that a configuration needs, if it has one.
    """

    def __init__(self, alike: Alike | None, memory: MemoryNeed | None = None) -> None:
        """Start without any trial."""
        self.alike = alike
        self._memory = MemoryBounds(memory) if memory is not None else None
        self._reported: set[frozenset[tuple[str, Any]]] = set()
        self._lacking = 0
        self._trials: dict[int, TrialRecord] = {}
        self._numbers: list[int] = []
        self._set: Counter[str] = Counter()
        self._unused: Counter[str] = Counter()
        self._inert: frozenset[str] = frozenset()
        # The numbers of the trials with a configuration, its inert parameters left out.
        self._places: dict[frozenset[tuple[str, Any]], list[int]] = {}

    @classmethod
    def of(cls, trials: Iterable[TrialRecord], alike: Alike | None) -> "Equivalence":
        """Learn from what ran."""
        equivalence = cls(alike)
        for trial in trials:
            equivalence.learn(trial)
        return equivalence

    @property
    def inert(self) -> frozenset[str]:
        """The parameters that the program reported as unused in every trial that set them."""
        return self._inert

    def learn(self, trial: TrialRecord) -> None:
        """Learn from a trial's runs so far: from measured ones, and from those that ran out of memory."""
        if self._memory is not None:
            self._memory.learn(trial)
        before = self._trials.pop(trial.number, None)
        measured = any(outcome.complete for outcome in trial.outcomes)
        if before is None and not measured:
            return
        if before is not None:
            self._count(before, -1)
            self._forget(before)
        if measured:
            self._trials[trial.number] = trial
            self._count(trial, 1)
        names = {*trial.configuration} & {name for name, count in self._set.items() if count >= _INERT_AFTER}
        changed = frozenset(name for name in names if self._unused[name] == self._set[name])
        inert = (self._inert - {*trial.configuration}) | changed
        if inert == self._inert:
            if measured:
                self._place(trial)
            return
        self._inert = inert
        self._places, self._numbers = {}, []
        for other in self._trials.values():
            self._place(other)

    def twin(self, configuration: Configuration) -> TrialRecord | None:
        """Return a measured trial that has the same effect as a configuration; None if there is none."""
        reduced = self._effective_part(configuration)
        same = self._places.get(frozenset(reduced.items()))
        first = same[0] if same else None
        if self.alike is not None:
            for number in self._numbers if first is None else self._numbers[: bisect_left(self._numbers, first)]:
                trial = self._trials[number]
                if self.alike(reduced, self._effective_part(trial.configuration), _details(trial)):
                    return trial
        return self._trials[first] if first is not None else None

    def judge(
        self, say: Callable[[str], None], say_detail: Callable[[str], None]
    ) -> Callable[[Configuration], bool] | None:
        """Return a function that tells whether a configuration needs no run, and reports each such one.

        None while nothing is known by which a configuration could be left out.

        Args:
            say: Gets the first few that lack memory.
            say_detail: Gets those with the same effect as a measured one.
        """

        def shows_nothing(configuration: Configuration) -> bool:
            # Hints are asked about before every proposal, so each configuration is reported once.
            reported, key = self._reported, frozenset(configuration.items())
            lack = self._memory.lacks(configuration) if self._memory is not None else ""
            if lack:
                if key not in reported and self._lacking < _MOST_REPORTED:
                    say(f"passed over, {lack}: {configuration_text(configuration)}")
                    self._lacking += 1
                reported.add(key)
                return True
            twin = self.twin(configuration)
            if twin is None:
                return False
            if key not in reported:
                say_detail(
                    f"passed over, the same in effect as trial {twin.number}: {configuration_text(configuration)}"
                )
            reported.add(key)
            return True

        return shows_nothing if self._inert or self.alike or self._memory else None

    def _count(self, trial: TrialRecord, by: int) -> None:
        unused = {name for outcome in trial.outcomes for name in outcome.unused}
        for name in trial.configuration:
            self._set[name] += by
            self._unused[name] += by * (name in unused)

    def _place(self, trial: TrialRecord) -> None:
        insort(self._places.setdefault(self._key(trial), []), trial.number)
        insort(self._numbers, trial.number)

    def _forget(self, trial: TrialRecord) -> None:
        self._places[self._key(trial)].remove(trial.number)
        self._numbers.remove(trial.number)

    def _key(self, trial: TrialRecord) -> frozenset[tuple[str, Any]]:
        return frozenset(self._effective_part(trial.configuration).items())

    def _effective_part(self, configuration: Configuration) -> Configuration:
        return {name: value for name, value in configuration.items() if name not in self._inert}


def _details(trial: TrialRecord) -> Mapping[str, Any]:
    return next(outcome.details for outcome in trial.outcomes if outcome.complete)
