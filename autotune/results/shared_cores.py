"""Shared cores: runs of a study that were bound to the same cores of one node at the same time, and were disturbed."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from autotune.records.study import Run
from launchers.cpus import parse_cpu_list
from launchers.job import Affinity


def sharing_cores(runs: Mapping[int, Run]) -> frozenset[int]:
    """Return the keys of the runs that shared a core with another one of `runs` for a while.

    A job that may use its whole node is bound to none of its cores: where it was, nobody knows.
    """
    on_node: dict[str, list[tuple[int, float, float, set[int]]]] = defaultdict(list)
    for key, run in runs.items():
        affinity = affinity_of(run)
        if affinity is None:
            continue
        cpus = parse_cpu_list(affinity.cpus)
        if len(cpus) < affinity.node_cpus:
            ended_at = affinity.began_at + run.outcome.usage.elapsed_s
            on_node[affinity.node].append((key, affinity.began_at, ended_at, cpus))
    return frozenset(key for placed in on_node.values() for key in _overlapping(placed))


def affinity_of(run: Run) -> Affinity | None:
    """Return which CPUs the job of a run could use; None if that is not known."""
    known = run.outcome.conditions
    if not known.keys() >= {"node", "cpus", "node_cpus", "began_at"}:
        return None
    return Affinity(str(known["node"]), str(known["cpus"]), int(known["node_cpus"]), float(known["began_at"]))


def _overlapping(placed: Iterable[tuple[int, float, float, set[int]]]) -> set[int]:
    """Return those of the jobs of a node, each with its time and its CPUs, that shared a CPU with another one."""
    sharing: set[int] = set()
    running: list[tuple[int, float, set[int]]] = []
    for key, began_at, ended_at, cpus in sorted(placed, key=lambda job: job[1]):
        running = [job for job in running if job[1] > began_at]
        others = {other for other, _, its in running if its & cpus}
        sharing |= others | ({key} if others else set())
        running.append((key, ended_at, cpus))
    return sharing
