"""Places: what is known of a machine by its name, of so many of its nodes."""

from functools import cache

from autotune.errors import AutotuneError
from autotune.machines.catalogue import find_machine
from autotune.records.measurement import Facts


def place(machine: str, nodes: int) -> tuple[str, Facts]:
    """Return the name and the facts of a machine by name or by the path of its description.

    Of one that nobody described, only the number of nodes is known.
    """
    found = described(machine, nodes)
    if found is not None:
        return found
    return machine, {} if nodes == 1 else {"nodes": nodes}


@cache
def described(machine: str, nodes: int = 1) -> tuple[str, Facts] | None:
    """Return the name and the facts of so many nodes of a machine that is described; None for others."""
    try:
        found = find_machine(machine)
    except AutotuneError:
        return None
    return found.name, {**found.for_nodes(nodes), "nodes": nodes}
