"""Runs that were bound to the same cores at the same time."""

import pytest

from autotune.records.outcome import Outcome
from autotune.records.study import Run
from autotune.results.disturbed_runs import sharing_cores
from launchers import Usage


def ran(cpus, began_at, *, node="n1", node_cpus=48, elapsed_s=10.0):
    conditions = {"node": node, "cpus": cpus, "node_cpus": node_cpus, "began_at": began_at}
    return Run({}, outcome=Outcome({"wall_s": 1.0}, usage=Usage(elapsed_s=elapsed_s), conditions=conditions))


@pytest.mark.parametrize(
    ("runs", "shared"),
    [
        ([ran("0-1", 0), ran("1,3", 9)], {0, 1}),
        ([ran("0-1", 0), ran("2-3", 9)], set()),
        ([ran("0", 0), ran("0", 10)], set()),
        ([ran("0", 0), ran("0", 5, node="n2")], set()),
        # These runs may use their whole node, so the kernel places them on free cores.
        ([ran("0-47", 0), ran("0-47", 5)], set()),
        ([ran("0-47", 0), ran("0", 5)], set()),
        ([ran("0-3", 0, elapsed_s=100.0), ran("0", 5), ran("1", 5), ran("4", 5), ran("3", 50)], {0, 1, 2, 4}),
    ],
)
def test_runs_that_shared_a_core_are_known_and_no_others(runs, shared):
    assert sharing_cores(dict(enumerate(runs))) == shared
    backwards = {key: runs[key] for key in reversed(range(len(runs)))}
    assert sharing_cores(backwards) == shared


def test_runs_without_a_known_place_are_not_judged():
    runs = [Run({}, outcome=Outcome({"wall_s": 1.0}, conditions={"load_1m": 0.5})) for _ in range(2)]
    assert sharing_cores(dict(enumerate(runs))) == frozenset()
