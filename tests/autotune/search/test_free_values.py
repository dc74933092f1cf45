"""Free values: a change of the winner that costs nothing is called free, one that costs is not."""

import numpy as np

from autotune.search.free_values import Trials, free_values
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
    given = {"rows": rows, "costs": values, "runs": np.ones(len(rows)), "censored": np.zeros(len(rows), dtype=bool)}
    return Trials(**{**given, **changes})


def test_what_costs_nothing_is_free_and_what_costs_is_not():
    assert free_values(SPACE, trials(40), WINNER) == {"idle": ["b"], "slow": [None]}


def test_few_or_noisy_trials_make_nothing_free():
    assert free_values(SPACE, trials(3), WINNER) == {}
    assert free_values(SPACE, trials(40, noise=0.3), WINNER) == {}


def test_what_failed_is_not_free():
    known = trials(40)
    failed = [one["idle"] == "b" for one in SPACE.decode(known.rows)]
    assert "idle" not in free_values(SPACE, trials(40, costs=np.where(failed, np.inf, known.costs)), WINNER)
