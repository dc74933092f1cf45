"""The earlier study: another study of the same program on the same machine, as before an upgrade.

A new release of a program, a library or an input gives other values, so those of an earlier study are not those of this
one. But its winner is the best guess where to begin, and its values, smoothed by a Gaussian process, guide the search
for as long as the study's own runs agree with them (`search.guidance.earlier_values`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from autotune.performance.installation import is_same_hardware
from autotune.performance.measured_here import MeasuredHere
from autotune.performance.recognition import has_same_sizes
from autotune.performance.regression.prediction import Interval
from autotune.performance.validity import broken_limits
from autotune.records.limit import Limits
from autotune.records.measurement import Judged, Measured, Setting
from spaces import Configuration, Space

if TYPE_CHECKING:
    from autotune.search.guidance.earlier_values import EarlierValues


# Fewer values say less about a space than the six trials of a search's own design and the default.
_LEAST_VALUES = 8


@dataclass(frozen=True, eq=False)
class EarlierStudy:
    """The measurements of an earlier study whose configurations are valid in the space and keep its limits.

    Attributes:
        measured: The measurements.
        has_other_input: Whether its input is known to be another one.
    """

    measured: MeasuredHere
    has_other_input: bool

    @classmethod
    def find(
        cls, space: Space, setting: Setting, known: Sequence[Measured], limits: Limits = ()
    ) -> "EarlierStudy | None":
        """Return the newest earlier study; None without one.

        One of the same input precedes one of another input of the same sizes, then one with a verdict, even if that
        kept the default, one without, then a study an import. Those with fewer than eight values do not count.
        """
        tables: dict[tuple[str, ...], list[Measured]] = {}
        for row in known:
            if _precedes(row.setting, setting) and not broken_limits(limits, row):
                tables.setdefault((*row.setting.key, row.setting.identity, row.setting.source), []).append(row)
        found = [
            cls(MeasuredHere.of(space, rows[0].setting, rows, limits), _has_other_input(rows[0].setting, setting))
            for rows in tables.values()
        ]
        # `max` returns the first of equals, here the newest: measurements are in the order of their studies.
        return max((one for one in reversed(found) if len(one._valued) >= _LEAST_VALUES), key=cls._rank, default=None)

    def _rank(self) -> tuple[bool, bool, bool]:
        return not self.has_other_input, self.verdict is not None, self.source.startswith("study ")

    @property
    def source(self) -> str:
        """The study, or the file, that has the measurements."""
        return self.measured.setting.source

    @property
    def winner(self) -> Configuration:
        """The winner of its verdict, the default if the verdict kept that, or its best trial without a verdict."""
        return self.measured.space.decode(self.measured.rows[self._best][None, :])[0]

    @property
    def gain(self) -> Interval | None:
        """How many times better than the default the winner was; None if the default was not measured."""
        return self.measured.gain(self.measured.measured[self._best])

    @cached_property
    def verdict(self) -> Judged | None:
        """Its verdict; None without one, or if that is about another default or a winner that is not valid here."""
        return next(filter(None, map(self.measured.verdict_on, self.measured.measured)), None)

    @property
    def _best(self) -> int:
        """The index in `measured` of the winner."""
        if self.verdict is not None:
            best = self.verdict.winner if self.verdict.holds else self.verdict.over
            return next(place for place, row in enumerate(self.measured.measured) if row.configuration == best)
        assert self.measured.best is not None
        return self.measured.best

    @property
    def _valued(self) -> list[int]:
        """The indexes in `measured` of those that have a value."""
        return [place for place, row in enumerate(self.measured.measured) if row.value is not None]

    @property
    def values(self) -> "EarlierValues":
        """The values for the search."""
        from autotune.search.guidance.earlier_values import EarlierValues  # noqa: PLC0415  what only shows studies needs no Optuna

        known = [self.measured.measured[place] for place in self._valued]
        costs = np.array([self.measured.cost(one) for one in known])
        runs = np.array([float(one.runs) for one in known])
        winner = self._valued.index(self._best)
        return EarlierValues(self.measured.space, self.measured.rows[self._valued], costs, runs, winner)


def _precedes(there: Setting, here: Setting) -> bool:
    """Return whether two settings differ in no more than version, build, or an input of the same known sizes."""
    return (
        there.program == here.program
        and there.metric.compares_with(here.metric)
        and there.nodes == here.nodes
        and is_same_hardware(there, here)
        and has_same_sizes(there, here)
    )


def _has_other_input(there: Setting, here: Setting) -> bool:
    return bool(there.input and here.input) and there.input != here.input
