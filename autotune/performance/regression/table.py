"""Cases, and tables of them: columns of numbers and words with expected costs, for a model of run times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from autotune.records.measurement import Facts, Measured, Setting
from objectives import registry
from objectives.shapes.costs import Costs
from objectives.shapes.shape import HARDWARE, Shape
from spaces import Space
from spaces.expressions.quantities import Columns, FloatArray, column_of, quantities
from spaces.valid_set.valid_set import Indices

Words = npt.NDArray[np.object_]
Places = npt.NDArray[np.intp]

# With only two values, a number of the machine adds nothing to its name, and its extrapolation is arbitrary.
_LEAST_VALUES = 3
_ALIKE = 6  # columns are compared to this number of digits


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


@dataclass(frozen=True)
class Table:
    """Columns of n cases.

    Attributes:
        numbers: Columns of numbers, (n,) each; NaN for a missing value.
        words: Columns of words, (n,) each; None for a missing value.
        costs: The expected costs of the cases; None if unknown.
        groups: The `machine`, `installation`, `build` and `workload` of each case, (n,) each: cases with equal labels
            share unknown effects.
        timers: Seconds that parts of the runs took, (n,) each; NaN if unknown.
    """

    numbers: Mapping[str, FloatArray]
    words: Mapping[str, Words]
    costs: Costs | None = None
    groups: Mapping[str, Words] = field(default_factory=dict)
    timers: Mapping[str, FloatArray] = field(default_factory=dict)

    @property
    def columns(self) -> Columns:
        """The numbers and words by name."""
        return {**self.numbers, **self.words}

    def __len__(self) -> int:
        return len(next(iter({**self.columns, **self.groups}.values()), ()))

    def at(self, places: Places) -> "Table":
        """Return the rows at the indexes `places`, (m,)."""
        return Table(
            {name: column[places] for name, column in self.numbers.items()},
            {name: column[places] for name, column in self.words.items()},
            self.costs.at(places) if self.costs is not None else None,
            {name: column[places] for name, column in self.groups.items()},
            {name: column[places] for name, column in self.timers.items()},
        )

    def only(self, names: frozenset[str]) -> "Table":
        """Return the table with only these columns of numbers and words."""
        return replace(
            self,
            numbers={name: column for name, column in self.numbers.items() if name in names},
            words={name: column for name, column in self.words.items() if name in names},
        )


@dataclass(frozen=True)
class Reader:
    """Reads cases of one program: their columns, and the numbers that the space's `rules` and physics compute.

    The cost terms are those of the `shape`, if a study has one, or else those of the program.
    """

    program: str
    rules: tuple[str, ...]
    shape: Shape | None = None

    def read(self, cases: DesignMatrix, names: Columns) -> Table:
        """Return the table of cases; facts hide the columns of words in `names` that have the same name."""
        columns = {**names, **cases.named}
        numbers = {name: column for name, column in columns.items() if column.dtype != object}
        words = {name: column for name, column in columns.items() if column.dtype == object}
        numbers |= quantities(self.rules, columns)
        physics = registry.quantities(self.program)
        if physics is not None:
            numbers |= physics(columns)
        return Table(numbers, words, self._costs(columns, cases.workload))

    def _costs(self, columns: Columns, workload: Columns) -> Costs | None:
        if self.shape is not None:
            if not HARDWARE & self.shape.reads <= columns.keys():
                return None
            return replace(self.shape.costs(columns), sized=not self.shape.reads.isdisjoint(workload))
        costs = registry.costs(self.program)
        return None if costs is None else costs(columns)


def informative_columns(table: Table, of_machine: frozenset[str]) -> frozenset[str]:
    """Return the names of columns that are not equivalent to an earlier column.

    Data cannot distinguish two proportional columns of numbers, or two columns of words that split the rows equally.
    The numbers in `of_machine` count only with three or more values.
    """
    seen: set[bytes] = set()
    kept = []
    for name, column in table.columns.items():
        values = np.unique(column[~np.isnan(column)]) if column.dtype != object else None
        if values is not None and name in of_machine and len(values) < _LEAST_VALUES:
            continue
        key = _pattern(column) if values is None else _shape(column, values)
        if key not in seen:
            seen.add(key)
            kept.append(name)
    return frozenset(kept)


def _shape(column: FloatArray, values: FloatArray) -> bytes:
    """Return a key that is equal for columns of numbers that are proportional, or powers of each other."""
    if len(values) < 2:
        return b"constant"
    scaled = np.log(column) if values[0] > 0.0 else column
    middle, spread = np.nanmean(scaled), np.nanstd(scaled)
    scaled = (scaled - middle) / spread
    first = scaled[np.flatnonzero(np.abs(scaled) > 0.1)[0]]
    rounded: FloatArray = np.round(scaled * np.sign(first), _ALIKE) + 0.0
    return b"number" + rounded.tobytes()


def _pattern(column: Words) -> bytes:
    """Return a key that is equal for columns of words that split the rows equally."""
    codes: dict[object, int] = {}
    return b"word" + np.array([codes.setdefault(value, len(codes)) for value in column]).tobytes()
