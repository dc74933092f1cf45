"""The earlier study: another study of the same program on the same machine, as before an upgrade.

A new release of a program, a library or an input gives other values, so those of an earlier study are not those of this
one. But its winner is the best guess where to begin, and its values, smoothed by a Gaussian process, guide the search
for as long as the study's own runs agree with them (`search.guidance.prior_mean`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from autotune.performance.installation import is_same_hardware
from autotune.performance.measured_here import MeasuredHere
from autotune.performance.recognition import has_same_sizes
from autotune.performance.regression.prediction import Interval
from autotune.records.measurement import Measured, Setting
from spaces import Configuration, Space

if TYPE_CHECKING:
    from autotune.search.guidance.earlier_values import EarlierValues


@dataclass(frozen=True, eq=False)
class EarlierStudy:
    """The measurements of an earlier study whose configurations are valid in the space."""

    measured: MeasuredHere

    @classmethod
    def find(cls, space: Space, setting: Setting, known: Sequence[Measured]) -> "EarlierStudy | None":
        """Return the newest study with a verdict, or else the newest with two values; None without one."""
        tables: dict[tuple[str, ...], list[Measured]] = {}
        for row in known:
            if _precedes(row.setting, setting):
                tables.setdefault((*row.setting.key, row.setting.identity, row.setting.source), []).append(row)
        found = [cls(MeasuredHere.of(space, rows[0].setting, rows)) for rows in tables.values()]
        usable = [one for one in found if one.measured.best is not None and len(one.measured.rows) > 1]
        # `max` returns the first of equals, here the newest.
        return max(reversed(usable), key=lambda one: one.measured.is_confirmed(one._best), default=None)

    @property
    def source(self) -> str:
        """The study, or the file, that has the measurements."""
        return self.measured.setting.source

    @property
    def winner(self) -> Configuration:
        """The winner of its verdict, or else its best configuration."""
        assert self.measured.best is not None
        return self.measured.space.decode(self.measured.rows[self.measured.best][None, :])[0]

    @property
    def gain(self) -> Interval | None:
        """How many times better than the default the winner was; None if the default was not measured."""
        return self.measured.gain(self._best)

    @property
    def _best(self) -> Measured:
        assert self.measured.best is not None
        return self.measured.measured[self.measured.best]

    @property
    def values(self) -> "EarlierValues":
        """The values for the search."""
        from autotune.search.guidance.earlier_values import EarlierValues  # noqa: PLC0415  what only shows studies needs no Optuna

        known = [
            row for row in zip(self.measured.rows, self.measured.measured, strict=True) if row[1].value is not None
        ]
        rows = np.array([indices for indices, _ in known], dtype=np.int32)
        costs = np.array([self.measured.cost(one) for _, one in known])
        return EarlierValues(self.measured.space, rows, costs, np.array([float(one.runs) for _, one in known]))


def _precedes(there: Setting, here: Setting) -> bool:
    """Return whether two settings differ in no more than what an upgrade changes: version, build or input."""
    return (
        there.program == here.program
        and there.metric.compares_with(here.metric)
        and there.nodes == here.nodes
        and is_same_hardware(there, here)
        and has_same_sizes(there, here)
    )
