"""The trial index: a study's trials in memory, updated by the process that writes them.

Reading them again would be slow: to find out what is new, a storage reads every unfinished trial, and many may run.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
from optuna.distributions import BaseDistribution
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial

from autotune.search.base import History, Rows
from autotune.search.distributions import distributions_of
from autotune.storage.observation import Observation
from spaces import Configuration, Space

_LEAST_ROOM = 64


@dataclass
class TrialIndex:
    """The trials of a study that the search knows."""

    space: Space
    direction: StudyDirection
    _searched: list[int] = field(default_factory=list)
    _nameless: int = 0
    _rows: Rows = field(default_factory=lambda: np.empty((0, 0), dtype=np.int32))

    @classmethod
    def of(cls, space: Space, direction: StudyDirection, counted: Iterable[FrozenTrial]) -> Self:
        """Return the index of the `counted` trials, those that give information."""
        index = cls(space, direction)
        counted = list(counted)
        index._append([trial.number for trial in counted], [trial.params for trial in counted])
        return index

    @cached_property
    def distributions(self) -> dict[str, BaseDistribution]:
        """The distributions of the parameters, by name."""
        return distributions_of(self.space)

    def add(self, number: int, configuration: Configuration) -> None:
        """Add a new trial."""
        self._append([number], [configuration])

    def history(self, seen: Mapping[int, Observation]) -> History | None:
        """Return the history of the trials; None if `seen` lacks an observation of one of them."""
        try:
            observations = [seen[number] for number in self._searched]
        except KeyError:
            return None
        return History(self._rows[: len(self._searched)], observations, self.direction, self._nameless)

    def _append(self, numbers: Sequence[int], configurations: Sequence[Mapping[str, Any]]) -> None:
        rows = self.space.indices(configurations)
        valid = self.space.valid_indices(rows)
        self._nameless += int((~valid).sum())
        count, needed = len(self._searched), len(self._searched) + int(valid.sum())
        if needed == count:
            return
        if needed > len(self._rows):
            room = np.empty((max(_LEAST_ROOM, 2 * needed), rows.shape[1]), dtype=np.int32)
            if count:
                room[:count] = self._rows[:count]
            self._rows = room
        self._rows[count:needed] = rows[valid]
        self._searched.extend(number for number, there in zip(numbers, valid.tolist(), strict=True) if there)
