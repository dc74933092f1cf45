"""Machines by name: the facts of a number of their nodes."""

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
    """Return the name and the facts of `nodes` nodes of a machine, by name or by the path of its description.

    Without a description only the number of nodes is known, if that; `this` machine has the name that its studies have.
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
    """Return the facts of some nodes without those that need their number, if that is not known."""
    return facts if nodes is not None else {name: facts[name] for name in facts if name not in {"nodes", "cores"}}


@cache
def find_description(machine: str, nodes: int = 1) -> tuple[str, Facts] | None:
    """Return the name and the facts of `nodes` nodes of a described machine; None for others."""
    try:
        description = find_machine(machine)
    except AutotuneError:
        return None
    return description.name, {**description.for_nodes(nodes), "nodes": nodes}


def machine_of(machine: Mapping[str, Any]) -> tuple[str, Facts]:
    """Return the name and the facts of a machine that a study stored: those of its description if it has one."""
    own = machine.get("facts")
    cores = machine.get("cores")
    host = machine.get("host")
    known = find_description(host) if isinstance(host, str) else None
    hardware = {name: value for name, value in machine.items() if name not in _NAMES}
    numbers = {name: value for name, value in hardware.items() if isinstance(value, int | float | str | bool)}
    facts: Facts = own if isinstance(own, Mapping) else known[1] if known else numbers
    if known is None:
        return f"{machine.get('cpu_model')}, {cores} cores", dict(facts)
    # A study may use a part of a machine.
    is_whole = known[1].get("cores") in {None, cores}
    return (known[0] if is_whole else f"{known[0]}, {cores} cores"), dict(facts)
