"""The facts of a machine by flat names, as used in expressions and models."""

from collections.abc import Mapping
from typing import Any

from spaces.parameters.parameter import Value

Facts = dict[str, Value]

# Facts whose path would be unclear as a name, and facts that have a shorter name in this project.
NAMES = {
    "nodes.count": "machine_nodes",
    "nodes.scheduler": "scheduler",
    "cpu.sockets": "sockets",
    "cpu.cores_per_node": "cores_per_node",
    "cpu.threads_per_core": "threads_per_core",
    "gpu.count": "gpus_per_node",
    "software.system": "system",
    "software.mpi": "mpi",
    "software.blas": "blas",
    "software.compiler": "compiler",
}
_NO_FACTS = frozenset(
    {
        *("measured.at", "measured.notes", "measured.spread", "measured.load_1m"),
        *("measured.memory_bandwidth_by_cores", "measured.blas_flops_by_cores"),
    }
)


def fact_name(path: str) -> str | None:
    """Return the flat name of the fact at `path` of a description; None for a remark or a table."""
    if path in _NO_FACTS:
        return None
    return NAMES.get(path, path.replace(".", "_"))


def flat_facts(given: Mapping[str, Any], nodes: int) -> Facts:
    """Return the facts of an allocation, by flat names.

    A machine with described processors and without accelerators has `gpus_per_node` 0.

    Args:
        given: The known facts of the machine, by path.
        nodes: The nodes of the allocation.
    """
    facts: Facts = {"nodes": nodes}
    per_node = given.get("cpu.cores_per_node")
    if per_node is not None:
        facts |= {"cores": nodes * per_node, "gpus_per_node": 0}
    for path, value in given.items():
        name = fact_name(path)
        if name is not None:
            facts[name] = value
    return facts
