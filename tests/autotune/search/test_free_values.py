"""Free values: a change of the winner that costs nothing is called free, one that costs is not."""

import numpy as np

from autotune.records.limit import Limit
from autotune.search.free_values import free_values
from autotune.search.limit_models import LimitedValues
from autotune.search.training_data import TrainingData
from objectives.base import Metric
from spaces import Choice, Constraint, Integer, Space

SPACE = Space(
    [
        Integer("x", (1, 2, 3, 4, 5, 6), default=1),
        Choice("idle", ("a", "b", "c"), default="a"),
        Choice("slow", ("no", "yes"), default="yes", optional=True),
    ],
    [Constraint("no c", "idle != 'c' or x <= 5", "c is small")],
)
WINNER = SPACE.indices([{"x": 6, "idle": "a", "slow": "no"}])[0]


def trials(count, noise=0.002, **changes):
    rng = np.random.default_rng(3)
    rows = np.concatenate([WINNER[None, :], SPACE.sample_indices(rng, count)])
    costs = [0.2 * (6 - one["x"]) + 0.3 * (one.get("slow") == "yes") for one in SPACE.decode(rows)]
    values = np.array(costs) + noise * rng.standard_normal(len(rows))
    given = {"values": values, "runs": np.ones(len(rows)), "censored": np.zeros(len(rows), dtype=bool)}
    return rows, TrainingData(**{**given, **changes})


def free(known, noise=0.002):
    return free_values(SPACE, *known, WINNER, noise)


def test_what_costs_nothing_is_free_and_what_costs_is_not():
    assert free(trials(40)) == {"idle": ["b"], "slow": [None]}


def test_few_or_noisy_trials_make_nothing_free():
    assert free(trials(18)) == {}
    assert free(trials(40, noise=0.3)) == {}
    assert free(trials(40), noise=0.02) == {}


def test_what_failed_is_not_free():
    rows, known = trials(40)
    failed = [one["idle"] == "b" for one in SPACE.decode(rows)]
    assert "idle" not in free(trials(40, values=np.where(failed, np.inf, known.values)))


def test_what_may_break_a_limit_is_not_free():
    rows, _ = trials(40)
    used = np.array([9.0 if one["idle"] == "b" else 1.0 for one in SPACE.decode(rows)])
    limited = (LimitedValues.of(Limit(Metric("memory", "B"), high=4.0), used),)
    assert free(trials(40, limited=limited)) == {"slow": [None]}
