"""Find machines by name, with the facts of some of their nodes."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from autotune.errors import AutotuneError
from autotune.machines.catalogue import THIS, find_machine
from autotune.machines.detect import quick_facts
from autotune.machines.this_machine import this_machine
from autotune.records.measurement import Facts

_NAMES = frozenset({"host", "system"})


def find_machine_facts(machine: str, nodes: int | None) -> tuple[str, Facts]:
    """Return the name and the facts of some nodes of a machine.

    Args:
        machine: Its name, the path of its description, or `this`, which gets the name that its studies use.
        nodes: The number of nodes; None if unknown. It is the only fact of a machine without a description.
    """
    if machine == THIS and nodes in {None, 1}:
        here = this_machine()
        name, facts = machine_of(here.describe() | {"facts": quick_facts(here)})
        return name, _of_nodes({**facts, **here.facts}, nodes)
    known = find_description(machine, nodes or 1)
    if known is not None:
        return known[0], _of_nodes(known[1], nodes)
    return machine, {} if nodes in {None, 1} else {"nodes": nodes or 1}


def _of_nodes(facts: Facts, nodes: int | None) -> Facts:
    """Return the facts of some nodes; if their number is unknown, without the facts that depend on it."""
    return facts if nodes is not None else {name: facts[name] for name in facts if name not in {"nodes", "cores"}}


@cache
def find_description(machine: str, nodes: int = 1) -> tuple[str, Facts] | None:
    """Return the name and the facts of `nodes` nodes of a described machine; None without a description."""
    try:
        description = find_machine(machine)
    except AutotuneError:
        return None
    return description.name, {**description.for_nodes(nodes), "nodes": nodes}


def machine_of(machine: Mapping[str, Any]) -> tuple[str, Facts]:
    """Return the name and the facts of a stored study's machine, from its description if it has one."""
    own = machine.get("facts")
    cores = machine.get("cores")
    host = machine.get("host")
    known = find_description(host) if isinstance(host, str) else None
    hardware = {name: value for name, value in machine.items() if name not in _NAMES}
    numbers = {name: value for name, value in hardware.items() if isinstance(value, int | float | str | bool)}
    facts: Facts = own if isinstance(own, Mapping) else known[1] if known else numbers
    if known is None:
        return f"{machine.get('cpu_model')}, {cores} cores", dict(facts)
    # A study may use only a part of the cores.
    is_whole = known[1].get("cores") in {None, cores}
    return (known[0] if is_whole else f"{known[0]}, {cores} cores"), dict(facts)
