"""Record learning curves of small trainings, for every configuration of a space, for `benchmarks/hyperband.py`.

    python -m benchmarks.small_trainings digits|boosting|sines FILE.csv [--jobs 2]

digits    a network of scikit-learn on its handwritten digits; test accuracy after each epoch
boosting  XGBoost on Friedman's first function with noise; test error after each round
sines     a network with one to three layers on a sum of sines; test error after each epoch

A curve ends before the first value that is not finite. A line of the table has the parameters, then the values
separated by blanks.
"""

import argparse
import csv
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice, takewhile
from math import isfinite
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_digits, make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier, MLPRegressor

from objectives.base import Metric
from spaces import Configuration, Float, Integer, Space


def digits(given: Configuration) -> Iterator[float]:
    """Yield the accuracy after each epoch."""
    x, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(x))
    x, y = x[order] / 16.0, y[order]
    network = MLPClassifier(
        hidden_layer_sizes=(int(given["width"]),),
        solver="sgd",
        batch_size=int(given["batch_size"]),
        learning_rate_init=float(given["learning_rate"]),
        momentum=float(given["momentum"]),
        random_state=1,
    )
    while True:
        network.partial_fit(x[:1200], y[:1200], classes=np.arange(10))
        yield float(network.score(x[1200:], y[1200:]))


def boosting(given: Configuration) -> Iterator[float]:
    """Yield the root mean square error after each round."""
    x, y = make_friedman1(2_000, noise=1.0, random_state=1)
    train, test = xgboost.DMatrix(x[:1000], y[:1000], nthread=1), xgboost.DMatrix(x[1000:], y[1000:], nthread=1)
    options = {**given, "max_depth": int(given["max_depth"]), "nthread": 1, "seed": 1}
    booster = xgboost.Booster(options, [train, test])
    step = 0
    while True:
        booster.update(train, step)
        yield float(np.sqrt(np.mean((booster.predict(test) - y[1000:]) ** 2)))
        step += 1


def sines(given: Configuration) -> Iterator[float]:
    """Yield the root mean square error after each epoch."""
    rng = np.random.default_rng(3)
    x = rng.uniform(-1.0, 1.0, (1_500, 4))
    y = np.sin(4.0 * x[:, 0]) + np.sin(3.0 * x[:, 1] * x[:, 2]) + 0.1 * rng.standard_normal(len(x))
    network = MLPRegressor(
        hidden_layer_sizes=(32,) * int(given["layers"]),
        solver="adam",
        batch_size=int(given["batch_size"]),
        learning_rate_init=float(given["learning_rate"]),
        alpha=float(given["alpha"]),
        random_state=1,
    )
    while True:
        network.partial_fit(x[:1000], y[:1000])
        yield float(np.sqrt(np.mean((network.predict(x[1000:]) - y[1000:]) ** 2)))


@dataclass(frozen=True)
class Training:
    """A training: its learning curve, the metric of the curve, the largest number of steps, and its space."""

    curve: Callable[[Configuration], Iterator[float]]
    metric: Metric
    most: int
    space: Space


SCORE, ERROR = Metric("score", "", "maximize"), Metric("error", "", "minimize")
_RATE = Float("learning_rate", 1e-4, 1e-1, log=True, points=10, default=1e-3)
TRAININGS = {
    "digits": Training(
        digits,
        SCORE,
        40,
        Space(
            [
                Integer("batch_size", (16, 32, 64, 128), default=64),
                _RATE,
                Integer("width", (16, 128), default=128),
                Float("momentum", 0.0, 0.9, points=2, default=0.9),
            ]
        ),
    ),
    "boosting": Training(
        boosting,
        ERROR,
        80,
        Space(
            [
                Float("eta", 0.01, 0.8, log=True, points=6, default=0.8),
                Integer("max_depth", (1, 2, 3, 5, 8), default=5),
                Float("subsample", 0.4, 1.0, points=3, default=1.0),
                Float("reg_lambda", 0.1, 10.0, log=True, points=2, default=0.1),
            ]
        ),
    ),
    "sines": Training(
        sines,
        ERROR,
        50,
        Space(
            [
                Integer("batch_size", (10, 30, 100, 300), default=100),
                _RATE,
                Integer("layers", (1, 2, 3), default=1),
                Float("alpha", 1e-4, 1.0, log=True, points=2, default=1e-4),
            ]
        ),
    ),
}


def key_of(configuration: Configuration) -> tuple[float, ...]:
    """Return the values of the parameters, rounded as in the tables."""
    return tuple(float(f"{float(value):.6g}") for value in configuration.values())


def read(path: Path) -> dict[tuple[float, ...], list[float]]:
    """Read a table; return its curves by the values of the parameters."""
    with path.open(newline="") as file:
        rows = [list(row.values()) for row in csv.DictReader(file)]
    return {tuple(map(float, row[:-1])): [float(value) for value in row[-1].split()] for row in rows}


def train(name: str, given: Configuration) -> list[float]:
    """Train a configuration to its last step or until a value is not finite; return its learning curve."""
    training, values = TRAININGS[name], list[float]()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        try:
            values.extend(takewhile(isfinite, islice(training.curve(given), training.most)))
        except ValueError as error:
            if "non-finite" not in str(error):  # scikit-learn raises this when weights overflow
                raise
    return values


def record(name: str, out: Path, jobs: int) -> None:
    """Train every configuration, and write the table."""
    space = TRAININGS[name].space
    given = space.decode(space.all_indices())
    with out.open("w", newline="") as file, ProcessPoolExecutor(jobs) as pool:
        rows = csv.writer(file)
        rows.writerow([*(parameter.name for parameter in space.parameters), "values"])
        for one, values in zip(given, pool.map(train, [name] * len(given), given), strict=True):
            rows.writerow([*(f"{value:g}" for value in key_of(one)), " ".join(f"{value:.4g}" for value in values)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=TRAININGS)
    parser.add_argument("out", type=Path)
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    record(given.name, given.out, given.jobs)


if __name__ == "__main__":
    main()
