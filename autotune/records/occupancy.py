"""Occupancy: the cores that a run was bound to, on which node and when."""

from dataclasses import dataclass
from math import inf
from typing import Self

from autotune.records.outcome import Outcome
from launchers.cpus import parse_cpu_list
from launchers.job import Affinity


@dataclass(frozen=True)
class Occupancy:
    """The cores of a node that a run was bound to, by all their hardware threads, until `ended_at`.

    A run that may use its whole node has none: the kernel puts it where there is room, and nobody knows where.
    """

    node: str
    threads: frozenset[int]
    began_at: float
    ended_at: float = inf

    @classmethod
    def by(cls, affinity: Affinity, elapsed_s: float = inf) -> Self | None:
        """Return that of a job with this affinity which took so long, or still runs."""
        cpus = parse_cpu_list(affinity.cpus)
        if len(cpus) >= affinity.node_cpus:
            return None
        threads = frozenset(cpus | parse_cpu_list(affinity.threads))
        return cls(affinity.node, threads, affinity.began_at, affinity.began_at + elapsed_s)

    @classmethod
    def of(cls, outcome: Outcome) -> Self | None:
        """Return that of a run which ended so; None also if it did not say where it was."""
        known = outcome.conditions
        if not known.keys() >= {"node", "cpus", "node_cpus", "began_at"}:
            return None
        cpus, threads = str(known["cpus"]), str(known.get("threads", ""))
        affinity = Affinity(str(known["node"]), cpus, int(known["node_cpus"]), float(known["began_at"]), threads)
        return cls.by(affinity, outcome.usage.elapsed_s)

    def shared(self, other: Self) -> frozenset[int]:
        """Return the hardware threads of the cores that both were bound to at the same time."""
        together = self.node == other.node and self.began_at < other.ended_at and other.began_at < self.ended_at
        return self.threads & other.threads if together else frozenset()
