"""The cores of a run, inferred from the jobs of a few configurations."""

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
    held = HeldCores.infer(SPACE, lambda one: 2 * one["np"] * one["threads"])
    rows = SPACE.sample_indices(np.random.default_rng(3), 20)
    cores = [2 * one["np"] * one["threads"] for one in SPACE.decode(rows)]
    assert held.cost_penalty(rows) == pytest.approx(0.5 * np.log(cores))


def test_cores_that_hardly_differ_or_follow_no_product_do_not_count():
    assert HeldCores.infer(SPACE, lambda one: 8) is None
    assert HeldCores.infer(SPACE, lambda one: 2 if one["how"] == "a" else 4) is None
    assert HeldCores.infer(SPACE, lambda one: one["np"] + one["threads"]) is None


def test_cores_of_words_alone_are_no_product():
    sizes = Space([Choice("size", ("small", "large"), default="small")])
    assert HeldCores.infer(sizes, lambda one: 1 if one["size"] == "small" else 64) is None


def test_a_zero_that_was_not_among_the_jobs_looked_at_is_not_free():
    space = Space([Integer.powers_of_two("np", 1, 64, default=1), Integer("depth", range(1000), default=5)])
    held = HeldCores.infer(space, lambda one: one["np"])
    rows = space.indices([{"np": 8, "depth": 0}, {"np": 8, "depth": 7}])
    assert "depth" in held.names, "or this test says nothing"
    assert held.cost_penalty(rows) == pytest.approx(0.5 * np.log([8.0, 8.0]))
