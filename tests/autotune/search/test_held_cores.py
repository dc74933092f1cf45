"""What a run holds, found out from the jobs of a few configurations."""

import numpy as np
import pytest

from autotune.search.guidance.held_cores import HeldCores
from spaces import Choice, Constraint, Integer, Space

SPACE = Space(
    [
        Integer.powers_of_two("np", 1, 64, default=64),
        Integer.powers_of_two("threads", 1, 8, default=1),
        Integer("grid", (1, 4, 9), optional=True),
        Choice("how", ("a", "b"), default="a"),
    ],
    [Constraint("cores", "np * threads <= 64", "there are no more")],
)


def test_cores_that_are_a_product_of_parameters_are_found():
    held = HeldCores.found(SPACE, lambda one: 2 * one["np"] * one["threads"])
    rows = SPACE.sample_indices(np.random.default_rng(3), 20)
    cores = [2 * one["np"] * one["threads"] for one in SPACE.decode(rows)]
    assert held.dearness(rows) == pytest.approx(0.5 * np.log(cores))


def test_cores_that_hardly_differ_or_follow_no_product_do_not_count():
    assert HeldCores.found(SPACE, lambda one: 8) is None
    assert HeldCores.found(SPACE, lambda one: 2 if one["how"] == "a" else 4) is None
    assert HeldCores.found(SPACE, lambda one: one["np"] + one["threads"]) is None
