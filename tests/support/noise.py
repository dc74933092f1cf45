"""Noise of runs: time over the time on a quiet machine, as a stream of factors in time order."""

import csv
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from math import exp
from pathlib import Path
from statistics import median

import numpy as np

Noise = Callable[[np.random.Generator], Iterator[float]]
"""Return an endless stream of factors, one for each run in order."""

# Length of the stretches in which a recording is replayed.
_STRETCH_RUNS = 40
_DRIFT_BOUND = 0.15
_DRIFT_STEP = 0.01


def normal(rng: np.random.Generator) -> Iterator[float]:
    """Yield 5 % normal noise."""
    while True:
        yield exp(0.05 * rng.standard_normal())


def heavy_tailed(rng: np.random.Generator) -> Iterator[float]:
    """Yield Student's t with 2.5 degrees of freedom, scaled by 5 %."""
    while True:
        yield exp(0.05 * rng.standard_t(2.5))


def spikes(rng: np.random.Generator) -> Iterator[float]:
    """Yield 5 % normal noise, with 5 % of the runs 1.3 to 3 times slower."""
    while True:
        slow = rng.uniform(1.3, 3.0) if rng.random() < 0.05 else 1.0
        yield slow * exp(0.05 * rng.standard_normal())


def drift(rng: np.random.Generator) -> Iterator[float]:
    """Yield 3 % normal noise on a random walk of 1 % a run, reflected at +-15 %."""
    level = rng.uniform(-_DRIFT_BOUND, _DRIFT_BOUND)
    while True:
        level += _DRIFT_STEP * rng.standard_normal()
        if abs(level) > _DRIFT_BOUND:
            level = float(np.sign(level)) * 2.0 * _DRIFT_BOUND - level
        yield exp(level + 0.03 * rng.standard_normal())


def recorded(factors: list[float]) -> Noise:
    """Return noise that replays stretches of a recording from random starting points, wrapping around."""

    def replay(rng: np.random.Generator) -> Iterator[float]:
        while True:
            first = int(rng.integers(len(factors)))
            for run in range(first, first + _STRETCH_RUNS):
                yield factors[run % len(factors)]

    return replay


def read_recording(path: Path) -> list[float]:
    """Read runs in time order from a table (configuration, wall_s), relative to their configuration's median."""
    with path.open(encoding="utf-8") as file:
        rows = [(row["configuration"], float(row["wall_s"])) for row in csv.DictReader(file)]
    times = defaultdict(list)
    for configuration, wall_s in rows:
        times[configuration].append(wall_s)
    medians = {configuration: median(values) for configuration, values in times.items()}
    return [wall_s / medians[configuration] for configuration, wall_s in rows]


SYNTHETIC: Mapping[str, Noise] = {"normal": normal, "heavy-tailed": heavy_tailed, "spikes": spikes, "drift": drift}


def spread(noise: Noise, seed: int, runs: int = 2_000) -> float:
    """Return the standard deviation of the logarithms of a long stretch."""
    return float(np.std(np.log(list(islice(noise(np.random.default_rng(seed)), runs)))))
