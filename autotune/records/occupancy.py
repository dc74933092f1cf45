"""Occupancy: the node, the cores and the time that a run was bound to."""

from dataclasses import dataclass
from math import inf
from typing import Self

from autotune.records.outcome import Outcome
from launchers.cpus import parse_cpu_list
from launchers.job import Affinity


@dataclass(frozen=True)
class Occupancy:
    """The cores that a run was bound to.

    A run that may use its whole node has no occupancy, because the kernel moves it between the cores.

    Attributes:
        node: The name of the node.
        threads: All hardware threads of the cores.
        began_at: The start of the run, in seconds since 1970.
        ended_at: The end of the run; infinite while it runs.
    """

    node: str
    threads: frozenset[int]
    began_at: float
    ended_at: float = inf

    @classmethod
    def by(cls, affinity: Affinity, elapsed_s: float = inf) -> Self | None:
        """Return the occupancy of a job that took `elapsed_s` seconds or still runs; None if it may use all cores."""
        cpus = parse_cpu_list(affinity.cpus)
        if len(cpus) >= affinity.node_cpus:
            return None
        threads = frozenset(cpus | parse_cpu_list(affinity.threads))
        return cls(affinity.node, threads, affinity.began_at, affinity.began_at + elapsed_s)

    @classmethod
    def of(cls, outcome: Outcome) -> Self | None:
        """Return the occupancy of a run that ended; None also if the run did not record its cores."""
        known = outcome.conditions
        if not known.keys() >= {"node", "cpus", "node_cpus", "began_at"}:
            return None
        cpus, threads = str(known["cpus"]), str(known.get("threads", ""))
        affinity = Affinity(str(known["node"]), cpus, int(known["node_cpus"]), float(known["began_at"]), threads)
        return cls.by(affinity, outcome.usage.elapsed_s)

    def threads_in_common(self, other: Self) -> frozenset[int]:
        """Return the hardware threads of the cores that both were bound to at the same time."""
        together = self.node == other.node and self.began_at < other.ended_at and other.began_at < self.ended_at
        return self.threads & other.threads if together else frozenset()
