"""Nodes: the free hosts and cores of a cluster, whose hosts come and go."""

import os
import socket
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path
from typing import TypeVar

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.core_pool import CoreClaim
from autotune.machines.this_machine import Machine, this_machine
from launchers import Resources
from launchers.local import end_jobs_below

Running = TypeVar("Running")

# If the cluster reports a task that was lost with a node, it does so within this time, in seconds.
_PATIENCE_S = 5.0
# Ray may take this long to end the agents of a killed session, in seconds.
_CLAIM_PATIENCE_S = 10.0
_CLAIM_PAUSE_S = 0.2


@dataclass(frozen=True)
class Node:
    """One host of a cluster.

    Attributes:
        key: The cluster's id of the host.
        name: The host's name for MPI.
        cpus: Its hardware threads, one for each core.
        gpus: The number of its GPUs.
    """

    key: str
    name: str
    cpus: tuple[int, ...]
    gpus: int = 0


@dataclass(frozen=True)
class NodeFacts:
    """The name and the hardware of a node, as its agent reports them."""

    name: str
    machine: Machine


class Agent:
    """A process on a node for the duration of the session: reports the node's hardware and claims its cores."""

    def __init__(self) -> None:
        self._claim: CoreClaim | None = None

    def facts(self) -> NodeFacts:
        """Return the node's name, Slurm's name if there is one, and its hardware."""
        return NodeFacts(os.environ.get("SLURMD_NODENAME") or socket.gethostname(), this_machine())

    def claim(self, cpus: Sequence[int], runs: Path) -> str:
        """Claim cores, and end jobs that a killed session left in `runs`; return why the claim failed, if it did."""
        give_up_at = time.monotonic() + _CLAIM_PATIENCE_S
        while self._claim is None:
            try:
                self._claim = CoreClaim.claim(cpus)
            except BusyError as error:
                if time.monotonic() >= give_up_at:
                    return str(error)
                time.sleep(_CLAIM_PAUSE_S)
        end_jobs_below(runs)
        return ""


def gpus_per_node(wanted: Resources) -> int:
    """Return the number of a job's GPUs on each of its nodes."""
    return ceil(wanted.gpus / wanted.nodes)


def overdue(running: Mapping[Running, str], gone_since: Mapping[str, float], now_s: float) -> list[Running]:
    """Return the tasks of nodes (by key) that have been gone too long for the cluster to report them."""
    return [task for task, key in running.items() if now_s - gone_since.get(key, now_s) >= _PATIENCE_S]


class NodePool:
    """The free cores and GPUs of a cluster's nodes.

    A job gets cores of one node, or whole nodes. The pool only counts GPUs; Ray chooses them. Small jobs are spread
    over the nodes, so that they disturb each other least. A job that names a host gets it if the host is present and
    has enough GPUs.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Start with all nodes free."""
        self._nodes: dict[str, Node] = {}
        self._free: dict[str, set[int]] = {}
        # By name, since a host that returns has another key, and lost jobs may still be ending there.
        self._held: set[tuple[str, int]] = set()
        self._held_gpus: Counter[str] = Counter()
        self.update(nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The present nodes."""
        return tuple(self._nodes.values())

    def find(self, name: str) -> Node | None:
        """Return the node called `name`; None if it is not present."""
        return next((node for node in self._nodes.values() if node.name == name), None)

    def update(self, nodes: Iterable[Node]) -> None:
        """Remove nodes that are gone and add new ones; jobs keep their resources."""
        present = {node.key: node for node in nodes}
        for key in self._nodes.keys() - present.keys():
            del self._nodes[key], self._free[key]
        for key, node in present.items():
            if key not in self._nodes:
                self._nodes[key] = node
                self._free[key] = {cpu for cpu in node.cpus if (node.name, cpu) not in self._held}

    def take(self, wanted: Resources) -> Resources | None:
        """Return the resources with their own hosts and cores; None if they are not free now.

        Raises:
            CannotRunHereError: All remaining nodes are free, and they are not enough.
        """
        resources = self._whole(wanted) if wanted.nodes > 1 else self._part(wanted)
        if resources is None and not self._held:
            left = ", ".join(sorted(node.name for node in self._nodes.values())) or "none"
            gpus = f" with {wanted.gpus} GPUs" if wanted.gpus else ""
            number = f"{wanted.nodes} nodes" if wanted.nodes > 1 else "a node"
            msg = (
                f"a run needs {number}{gpus}; nodes of the Ray cluster that are left: {left}\n"
                "every finished run is stored; with enough nodes in the cluster the same command continues"
            )
            raise CannotRunHereError(msg)
        return resources

    def give_back(self, taken: Resources) -> None:
        """Return a job's resources to the pool, except those on nodes that are gone."""
        for name in taken.hosts:
            node = self.find(name)
            ours = {cpu for held, cpu in self._held if held == name and (taken.nodes > 1 or cpu in taken.cpus)}
            self._held -= {(name, cpu) for cpu in ours}
            self._held_gpus[name] -= gpus_per_node(taken)
            if node is not None:
                self._free[node.key] |= ours & set(node.cpus)

    def _part(self, wanted: Resources) -> Resources | None:
        named = self.find(wanted.hosts[0]) if wanted.hosts else None
        if named is not None and named.gpus < gpus_per_node(wanted):
            named = None
        keys = [
            key
            for key, node in self._nodes.items()
            if named in {None, node}
            and min(wanted.cores, len(node.cpus)) <= len(self._free[key])
            and self._has_gpus(node, wanted)
        ]
        if not keys:
            return None
        key = max(keys, key=lambda key: len(self._free[key]))
        node = self._nodes[key]
        cpus = tuple(sorted(self._free[key])[: min(wanted.cores, len(node.cpus))])
        self._hold(node, cpus, wanted)
        return replace(wanted, cpus=cpus, hosts=(node.name,))

    def _whole(self, wanted: Resources) -> Resources | None:
        free = [
            node
            for key, node in self._nodes.items()
            if len(self._free[key]) == len(node.cpus) and self._has_gpus(node, wanted)
        ]
        if len(free) < wanted.nodes:
            return None
        chosen = free[: wanted.nodes]
        for node in chosen:
            self._hold(node, node.cpus, wanted)
        return replace(wanted, cpus=chosen[0].cpus, hosts=tuple(node.name for node in chosen))

    def _has_gpus(self, node: Node, wanted: Resources) -> bool:
        return self._held_gpus[node.name] + gpus_per_node(wanted) <= node.gpus

    def _hold(self, node: Node, cpus: Iterable[int], wanted: Resources) -> None:
        self._held_gpus[node.name] += gpus_per_node(wanted)
        self._held |= {(node.name, cpu) for cpu in cpus}
        self._free[node.key].difference_update(cpus)
