"""Find runs of a study that were bound to the same cores of one node at the same time, and so disturbed each other."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from autotune.records.occupancy import Occupancy
from autotune.records.study import Run


def sharing_cores(runs: Mapping[int, Run]) -> frozenset[int]:
    """Return the keys of the runs that shared a core with another of `runs` for some time."""
    on_node: dict[str, list[tuple[int, Occupancy]]] = defaultdict(list)
    for key, run in runs.items():
        occupancy = Occupancy.of(run.outcome)
        if occupancy is not None:
            on_node[occupancy.node].append((key, occupancy))
    return frozenset(key for placed in on_node.values() for key in _overlapping(placed))


def _overlapping(placed: Iterable[tuple[int, Occupancy]]) -> set[int]:
    """Return the keys of the runs of one node that shared a core with another."""
    sharing: set[int] = set()
    running: list[tuple[int, Occupancy]] = []
    for key, occupancy in sorted(placed, key=lambda run: run[1].began_at):
        running = [run for run in running if run[1].ended_at > occupancy.began_at]
        others = {other for other, its in running if its.threads_in_common(occupancy)}
        sharing |= others | ({key} if others else set())
        running.append((key, occupancy))
    return sharing
