"""Recorded learning curves, as spaces that a search can train in.

The tables of `benchmarks/data` have every configuration of a grid. Those of TaskSet (Metz et al. 2020), in a folder of
one's own, have a thousand random settings of Adam; a proposal trains the nearest of them, by the logarithms.
"""

import csv
import gzip
import json
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from math import isfinite, log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import small_trainings
from benchmarks.small_trainings import ERROR, SCORE, key_of
from objectives.base import Metric
from spaces import Configuration, Float, Integer, Space

FOLDER = Path(__file__).parent / "data"
DNA_EPOCHS = 27
DNA_SPACE = Space(
    [
        Integer("batch_size", (8, 16, 32, 64, 128, 256), default=64),
        Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3),
    ]
)
# The number of grid values that a search may choose from for each of TaskSet's parameters.
_POINTS = 30


@dataclass(frozen=True, eq=False)
class Trainings:
    """Recorded trainings with up to `most` steps.

    Attributes:
        space: The space to search.
        unit: The recorded settings in the unit cube, (n, d).
        curves: Their learning curves; one ends before the first value that is not finite.
        metric: The metric of the curves.
        most: The most steps.
    """

    space: Space
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
        sizes = np.array([len(parameter.values) for parameter in self.space.parameters])
        return self.curves[self.nearest((self.space.indices([configuration])[0] + 0.5) / sizes)]

    def default(self, seed: int) -> int:
        """Return a random setting that trained to its end; with one for all seeds, studies would hardly differ."""
        return random.Random(seed).choice([n for n, curve in enumerate(self.curves) if len(curve) == self.most])

    def with_default(self, number: int) -> "Trainings":
        """Make a recorded setting the default of the space."""
        places = zip(self.space.parameters, self.unit[number], strict=True)
        chosen = [(parameter, int(place * len(parameter.values))) for parameter, place in places]
        parameters = [replace(one, default=one.values[min(place, len(one.values) - 1)]) for one, place in chosen]
        return replace(self, space=Space(parameters))

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
    unit = (rows + 0.5) / np.array([len(parameter.values) for parameter in space.parameters])
    return Trainings(space, unit, [curves.get(key_of(one), []) for one in space.decode(rows)], metric, most)


def _read_dna() -> dict[tuple[float, ...], list[float]]:
    curves: dict[tuple[float, ...], list[float]] = {}
    with (FOLDER / "dna_curves.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            curves.setdefault((int(row["batch_size"]), float(row["learning_rate"])), []).append(float(row["val_auc"]))
    return curves


def _of_taskset(path: Path) -> Trainings:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        records = json.load(file)
    names = list(records[0]["hp"])
    settings = np.array([[_logarithm(name, record["hp"][name]) for name in names] for record in records])
    low, high = settings.min(axis=0), settings.max(axis=0)
    ranges = zip(names, np.exp(low).tolist(), np.exp(high).tolist(), strict=True)
    space = Space([Float(name, start, end, log=True, points=_POINTS) for name, start, end in ranges])
    # The first look is before the first epoch.
    curves = [list(takewhile(isfinite, record["valid"]["loss"][1:])) for record in records]
    return Trainings(space, (settings - low) / (high - low), curves, ERROR, max(map(len, curves)))


def _logarithm(name: str, value: float) -> float:
    return log(1.0 - value if name.startswith("beta") else value)
