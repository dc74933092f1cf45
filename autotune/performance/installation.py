"""Installations: how a program was built on a machine, and on which hardware.

A study stores these facts with its machine; facts that an output prints are stored with its workload.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from autotune.errors import AutotuneError
from autotune.records.measurement import INSTALLATION, Facts, Setting, hardware
from spaces import Value
from spaces.parameters.errors import did_you_mean

_YES_OR_NO = {"openmp", "scalapack"}
_NO_MODEL = re.compile(r"\((?:r|tm)\)|@.*$|\b(?:cpu|processor|\d+-core)\b", re.IGNORECASE)


def with_installation_apart(setting: Setting) -> Setting:
    """Return the setting with the facts of the program's build moved from the workload to the machine."""
    built = {name: value for name, value in setting.workload_facts.items() if name in INSTALLATION}
    if not built:
        return setting
    sizes = {name: value for name, value in setting.workload_facts.items() if name not in built}
    return replace(setting, machine_facts={**setting.machine_facts, **built}, workload_facts=sizes)


def stated_installation(words: Iterable[str]) -> dict[str, Value]:
    """Return the facts of an installation that a user states as NAME=VALUE; true and false become booleans.

    Raises:
        AutotuneError: A word is not NAME=VALUE, the fact is unknown or stated twice, or a boolean fact has another
            value.
    """
    facts: dict[str, Value] = {}
    for word in words:
        name, equals, text = (part.strip() for part in word.partition("="))
        if not equals or not text:
            msg = f"--installation takes NAME=VALUE, got {word!r}"
            raise AutotuneError(msg)
        if name not in INSTALLATION:
            known = sorted(INSTALLATION)
            msg = f"no fact of an installation is called {name!r}{did_you_mean(name, known)}; known: {', '.join(known)}"
            raise AutotuneError(msg)
        if name in facts:
            msg = f"--installation states {name} twice: {facts[name]!r} and {text!r}; state it once"
            raise AutotuneError(msg)
        value: Value = {"true": True, "false": False}.get(text.lower(), text)
        if name in _YES_OR_NO and not isinstance(value, bool):
            msg = f"--installation {name}={text}: it is true or false; write {name}=true or {name}=false"
            raise AutotuneError(msg)
        facts[name] = value
    return facts


def agree(one: Facts, other: Facts) -> bool:
    """Return whether two sets of facts have equal values for all names that both have."""
    return all(one[name] == other[name] for name in one.keys() & other.keys())


def is_same_hardware(one: Setting, other: Setting) -> bool:
    """Return whether two settings are on the same machine: by name, or by the nodes if a study made up the name."""
    if hardware(one.machine, one.machine_facts) == hardware(other.machine, other.machine_facts):
        return True
    node = _node(one.machine_facts)
    is_made_up = any(
        setting.machine.startswith(f"{setting.machine_facts.get('cpu_model')},") for setting in (one, other)
    )
    return is_made_up and node is not None and node == _node(other.machine_facts)


def machine_numbers(settings: Sequence[Setting]) -> tuple[int, ...]:
    """Return the number of each setting's machine, (n,), counted from 0 in order of appearance."""
    firsts: list[Setting] = []
    numbers = []
    for setting in settings:
        number = next((n for n, first in enumerate(firsts) if is_same_hardware(first, setting)), len(firsts))
        if number == len(firsts):
            firsts.append(setting)
        numbers.append(number)
    return tuple(numbers)


def _node(facts: Facts) -> tuple[object, ...] | None:
    """Return the facts that identify a kind of node; None if they are unknown."""
    model, cores = facts.get("cpu_model"), facts.get("cores_per_node")
    if not isinstance(model, str) or cores is None:
        return None
    return (*_NO_MODEL.sub(" ", model).lower().split(), cores, facts.get("sockets"), facts.get("gpu_model"))
