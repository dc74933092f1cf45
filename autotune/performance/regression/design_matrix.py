"""Cases: configurations and their settings as columns for models."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from autotune.records.measurement import Facts, Measured, Setting
from spaces import Space
from spaces.expressions.quantities import Columns, column_of
from spaces.valid_set.valid_set import Indices


@dataclass(frozen=True)
class DesignMatrix:
    """Columns, (n,) each, by name: of the parameters, the workload's facts and the machine's facts."""

    configuration: Columns
    workload: Columns
    machine: Columns

    @classmethod
    def from_measurements(cls, rows: Sequence[Measured]) -> "DesignMatrix":
        """Return the cases of measurements, in their order."""
        return cls(
            _columns([row.configuration for row in rows]),
            _columns([row.setting.workload_facts for row in rows]),
            _columns([row.setting.machine_facts for row in rows]),
        )

    @classmethod
    def candidates(cls, space: Space, rows: Indices, setting: Setting) -> "DesignMatrix":
        """Return the cases of value indexes (n, p) of `space` in a setting."""
        count = len(rows)
        return cls(
            space.columns(rows), _constant(setting.workload_facts, count), _constant(setting.machine_facts, count)
        )

    @property
    def named(self) -> Columns:
        """All columns by name; a parameter hides a fact of the same name, and a workload's fact hides the machine's."""
        return {**self.machine, **self.workload, **self.configuration}

    def __len__(self) -> int:
        return len(next(iter(self.named.values()), ()))


def _columns(rows: Sequence[Mapping[str, object]]) -> Columns:
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: column_of([row.get(name) for row in rows]) for name in names}


def _constant(facts: Facts, count: int) -> Columns:
    return {name: np.repeat(column_of([value]), count) for name, value in facts.items()}
