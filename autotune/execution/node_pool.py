"""Nodes: which of a cluster's hosts and cores no trial uses at the moment, while hosts come and go."""

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

# The cluster itself says at once what was lost with a node, or not at all.
_PATIENCE_S = 5.0
# So long may Ray take to end the agents of a session that was killed.
_CLAIM_PATIENCE_S = 10.0
_CLAIM_PAUSE_S = 0.2


@dataclass(frozen=True)
class Node:
    """One host of a cluster. `name` is what MPI calls it, `key` the cluster's own id; it has `cpus` and `gpus`."""

    key: str
    name: str
    cpus: tuple[int, ...]
    gpus: int = 0


@dataclass(frozen=True)
class NodeFacts:
    """What a node says of itself."""

    name: str
    machine: Machine


class Agent:
    """Lives on a node while the study does: says what is there, and holds its cores against other studies."""

    def __init__(self) -> None:
        self._claim: CoreClaim | None = None

    def facts(self) -> NodeFacts:
        """Return the node's name, as Slurm knows it if that is there, and what it has."""
        return NodeFacts(os.environ.get("SLURMD_NODENAME") or socket.gethostname(), this_machine())

    def claim(self, cpus: Sequence[int], runs: Path) -> str:
        """Claim cores, and end what a killed session left of jobs in `runs`; return why the cores cannot be had."""
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
    """Return how many GPUs a job has on each of its nodes."""
    return ceil(wanted.gpus / wanted.nodes)


def overdue(running: Mapping[Running, str], gone_since: Mapping[str, float], now_s: float) -> list[Running]:
    """Return what runs on nodes (by key) that have been gone for so long that nobody will report of it."""
    return [task for task, key in running.items() if now_s - gone_since.get(key, now_s) >= _PATIENCE_S]


class NodePool:
    """The cores and GPUs of a cluster's nodes that no trial of a study uses at the moment.

    A job gets cores of one node, or whole nodes; its GPUs are counted here, and Ray shows it which ones they are. Small
    jobs are spread, so that they disturb one another least; one that names a host gets
    that, if it is there and can have it.
    """

    def __init__(self, nodes: Iterable[Node]) -> None:
        """Start with all nodes free."""
        self._nodes: dict[str, Node] = {}
        self._free: dict[str, set[int]] = {}
        # By name: a host that comes back has another key, and jobs that are said to be gone may still end there.
        self._held: set[tuple[str, int]] = set()
        self._held_gpus: Counter[str] = Counter()
        self.update(nodes)

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that are there."""
        return tuple(self._nodes.values())

    def named(self, name: str) -> Node | None:
        """Return the node that is called so, if it is there."""
        return next((node for node in self._nodes.values() if node.name == name), None)

    def update(self, nodes: Iterable[Node]) -> None:
        """Forget the nodes that are gone, and take up those that are new; jobs keep what they have."""
        present = {node.key: node for node in nodes}
        for key in self._nodes.keys() - present.keys():
            del self._nodes[key], self._free[key]
        for key, node in present.items():
            if key not in self._nodes:
                self._nodes[key] = node
                self._free[key] = {cpu for cpu in node.cpus if (node.name, cpu) not in self._held}

    def take(self, wanted: Resources) -> Resources | None:
        """Return the resources with hosts and cores of their own; None: not now.

        Raises:
            CannotRunHereError: all nodes that are left are free, and it is not enough.
        """
        resources = self._whole(wanted) if wanted.nodes > 1 else self._part(wanted)
        if resources is None and not self._held:
            left = ", ".join(sorted(node.name for node in self._nodes.values())) or "none"
            gpus = f" with {wanted.gpus} GPUs" if wanted.gpus else ""
            number = f"{wanted.nodes} nodes" if wanted.nodes > 1 else "a node"
            msg = (
                f"a run needs {number}{gpus}; nodes of the Ray cluster that are left: {left}\n"
                "every finished run is stored; with enough nodes in the cluster the same command goes on"
            )
            raise CannotRunHereError(msg)
        return resources

    def give_back(self, taken: Resources) -> None:
        """Return what a job had; what was on nodes that are gone is forgotten."""
        for name in taken.hosts:
            node = self.named(name)
            ours = {cpu for held, cpu in self._held if held == name and (taken.nodes > 1 or cpu in taken.cpus)}
            self._held -= {(name, cpu) for cpu in ours}
            self._held_gpus[name] -= gpus_per_node(taken)
            if node is not None:
                self._free[node.key] |= ours & set(node.cpus)

    def _part(self, wanted: Resources) -> Resources | None:
        named = self.named(wanted.hosts[0]) if wanted.hosts else None
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
