"""Simulated trials that compete at the end of a study."""

import numpy as np

from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.execution.core_pool import CorePool
from autotune.records.series import Series
from autotune.statistics.standings import Standings
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from spaces import Choice, Constraint, Flag, Integer, Space
from tests.support.fakes import SECONDS, definition, study_file, took
from tests.support.managers import managed
from tests.support.stored import add_trial

SPACE = Space(
    [
        Integer.range("np", 1, 8, default=8),
        Choice("blas", ("slow", "fast"), optional=True),
        Choice("malloc", ("keep", "huge"), optional=True),
        Flag("bind", optional=True),
    ],
    [Constraint("bind", "not is_set(bind) or np <= 4", "the cores of one socket")],
)
DEFAULT = {"np": 8}
STUDY = study_file(verdict={"pairs": 6, "max_pairs": 12, "rounds": 3, "candidates": 3, "precision": 0.03})


def timed(configuration):
    """Return a time that depends on np (best at 4) and blas, but not on malloc and bind."""
    return (1.0 + 0.25 * abs(configuration["np"] - 4)) * (0.8 if configuration.get("blas") == "fast" else 1.0)


def noisy(spread=0.01, seed=0):
    rng = np.random.default_rng(seed)
    return lambda configuration: took(timed(configuration) * float(np.exp(rng.normal(0.0, spread))))


def new_store(folder, name="paper"):
    return StudyStore.create(f"sqlite:///{folder / 'autotune.db'}", name, definition(SPACE))


def manager(folder, executor, display=None):
    return managed(executor, folder / "runs", pool=CorePool(range(8)), display=display)


def add(store, *trials):
    """Store trials, (configuration, seconds), as if a session had run each once."""
    for configuration, seconds in trials:
        add_trial(store, SPACE, configuration, took(seconds), worth=Observation(value=seconds))


WINNER = {"np": 4, "blas": "fast", "malloc": "keep", "bind": True}
SIMPLE = {"np": 4, "blas": "fast"}


def rounds_of(store, runs):
    """Return the rounds of a verdict on two configurations: np=8, the default, and np=4."""
    sides = (Side("default", {"np": 8}, 0), Side("trial 1", {"np": 4}, 1))
    return ComparisonRounds(
        store, runs, Standings({}, SECONDS, "median"), Series.verdict(1), sides, 0, "confirming", "x"
    )
