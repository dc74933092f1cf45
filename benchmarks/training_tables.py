"""Recorded learning curves, as spaces that a search can train in.

The tables of `benchmarks/data` have every configuration of a grid. Those of TaskSet (Metz et al. 2020), in a folder of
one's own, have a thousand random settings of Adam, and the space is exactly these.
"""

import csv
import gzip
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import takewhile
from math import isfinite
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import small_trainings
from benchmarks.small_trainings import ERROR, SCORE, key_of
from objectives.base import Metric
from spaces import Configuration, Float, Integer, Listed, Space, Value

FOLDER = Path(__file__).parent / "data"
DNA_EPOCHS = 27
DNA_SPACE = Space(
    [
        Integer("batch_size", (8, 16, 32, 64, 128, 256), default=64),
        Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3),
    ]
)


@dataclass(frozen=True, eq=False)
class Trainings:
    """Recorded trainings with up to `most` steps.

    Attributes:
        space: The space to search: the recorded settings.
        settings: The settings, (n,).
        unit: The same in the unit cube, (n, d).
        curves: Their learning curves; one ends before the first value that is not finite.
        metric: The metric of the curves.
        most: The most steps.
    """

    space: Space
    settings: Sequence[Configuration]
    unit: NDArray[np.float64]
    curves: Sequence[Sequence[float]]
    metric: Metric
    most: int

    @property
    def dimensions(self) -> int:
        """The number of parameters."""
        return self.unit.shape[1]

    def nearest(self, unit: NDArray[np.float64]) -> int:
        """Return the number of the recorded setting nearest to a point, (d,)."""
        return int(((self.unit - unit) ** 2).sum(axis=1).argmin())

    def curve(self, configuration: Configuration) -> Sequence[float]:
        return self.curves[self._numbers[tuple(configuration.values())]]

    @cached_property
    def _numbers(self) -> dict[tuple[Value, ...], int]:
        return {tuple(setting.values()): number for number, setting in enumerate(self.settings)}

    def default(self, seed: int) -> int:
        """Return a random setting that trained to its end; with one for all seeds, studies would hardly differ."""
        return random.Random(seed).choice([n for n, curve in enumerate(self.curves) if len(curve) == self.most])

    def with_default(self, number: int) -> "Trainings":
        """Make a recorded setting the default of the space."""
        chosen = self.settings[number]
        parameters = [replace(one, default=chosen[one.name]) for one in self.space.parameters]
        return replace(self, space=Space(parameters, self.space.constraints))

    def best(self, values: Iterable[float]) -> float:
        return min(values, key=self.metric.cost)

    @property
    def optimum(self) -> float:
        return self.best(value for curve in self.curves for value in curve)

    def regret(self, value: float) -> float:
        """Return the distance of a value from the best of all; 1 is the median of all trainings."""
        middle = float(np.median([self.best(curve) for curve in self.curves if curve]))
        return (value - self.optimum) / (middle - self.optimum)


def load_tables(taskset: Path | None) -> Iterator[tuple[str, Trainings]]:
    """Yield the tables of `benchmarks/data`, and those of the folder `taskset`, with their names."""
    yield "dna", _of_grid(DNA_SPACE, _read_dna(), SCORE, DNA_EPOCHS)
    for name, training in small_trainings.TRAININGS.items():
        curves = small_trainings.read(FOLDER / f"{name}_curves.csv")
        yield name, _of_grid(training.space, curves, training.metric, training.most)
    for path in sorted(taskset.glob("*.json.gz")) if taskset else ():
        yield path.name.removesuffix(".json.gz"), _of_taskset(path)


def _of_grid(space: Space, curves: dict[tuple[float, ...], list[float]], metric: Metric, most: int) -> Trainings:
    rows = space.all_indices()
    settings = space.decode(rows)
    unit = (rows + 0.5) / np.array([len(parameter.values) for parameter in space.parameters])
    return Trainings(space, settings, unit, [curves.get(key_of(one), []) for one in settings], metric, most)


def _read_dna() -> dict[tuple[float, ...], list[float]]:
    curves: dict[tuple[float, ...], list[float]] = {}
    with (FOLDER / "dna_curves.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault((int(row["batch_size"]), float(row["learning_rate"])), []).append(float(row["val_auc"]))
    return curves


def _of_taskset(path: Path) -> Trainings:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = json.load(file)
    settings = [{name: _positive(name, value) for name, value in record["hp"].items()} for record in records]
    names = list(settings[0])
    columns = {name: sorted({setting[name] for setting in settings}) for name in names}
    listed = Listed.of("recorded", names, [list(setting.values()) for setting in settings])
    space = Space([Float.of_values(name, values) for name, values in columns.items()], [listed])
    logs = np.log([list(setting.values()) for setting in settings])
    low, high = logs.min(axis=0), logs.max(axis=0)
    # The first look is before the first epoch.
    curves = [list(takewhile(isfinite, record["valid"]["loss"][1:])) for record in records]
    return Trainings(space, settings, (logs - low) / (high - low), curves, ERROR, max(map(len, curves)))


def _positive(name: str, value: float) -> float:
    """Return a number whose logarithm tells: Adam's betas are near 1."""
    return 1.0 - value if name.startswith("beta") else value
