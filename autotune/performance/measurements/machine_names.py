"""Machines by name: the facts of a number of their nodes."""

from functools import cache

from autotune.errors import AutotuneError
from autotune.machines.catalogue import find_machine
from autotune.records.measurement import Facts


def place(machine: str, nodes: int) -> tuple[str, Facts]:
    """Return the name and the facts of `nodes` nodes of a machine, by name or by the path of its description.

    Without a description only the number of nodes is known.
    """
    known = described(machine, nodes)
    if known is not None:
        return known
    return machine, {} if nodes == 1 else {"nodes": nodes}


@cache
def described(machine: str, nodes: int = 1) -> tuple[str, Facts] | None:
    """Return the name and the facts of `nodes` nodes of a described machine; None for others."""
    try:
        description = find_machine(machine)
    except AutotuneError:
        return None
    return description.name, {**description.for_nodes(nodes), "nodes": nodes}
