"""The definition of a study: what it measures, where, and its study file."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from math import fsum
from typing import Any, Self

from pydantic import ValidationError

from autotune.formatting import plain_line
from autotune.records.stored import Stored
from autotune.studyfile.model import StudyFile
from objectives import registry
from objectives.base import Metric

_log = logging.getLogger(__name__)

# The memory for programs varies a little between kernels, and between nodes of one type.
_MEMORY, _MUCH_GIB, _OF_KERNELS = "memory_bytes", 8, 0.02


@dataclass(frozen=True)
class MixedInput:
    """One input of a mix: its share (all shares add up to 1) and the metric of its value (`target`)."""

    name: str
    share: float
    target: Metric


# The sections of a study file that say what runs.
_WHAT_RUNS = ("target", "options", "inputs", "software", "space", "stopping", "tradeoff", "decisions")


@dataclass(frozen=True)
class Definition(Stored):
    """The definition of a study. A session can continue a study only if `differences` returns nothing.

    All fields are JSON-able.

    Attributes:
        objective: The name of the objective.
        options: The options of the objective.
        metrics: The metrics; the first is optimised.
        space: `Space.to_dict()`.
        identity: The conditions of comparable measurements: the input and the program's version.
        facts: Facts about the workload and the installation.
        machine: The description of the machine.
        machine_identity: The properties of the machine that must agree.
        version: The version of autotune.
        study: The study file of the newest session, as stored; `study_file` is what it says.
        installation: The names of the facts about the program's installation; the others are about the workload.
        reading: How the output of runs was read.
    """

    objective: str
    options: Mapping[str, Any]
    metrics: tuple[Metric, ...]
    space: Mapping[str, Any]
    identity: Mapping[str, str]
    facts: Mapping[str, Any]
    machine: Mapping[str, Any]
    machine_identity: Mapping[str, str]
    version: str
    study: Mapping[str, Any] = field(default_factory=dict)
    installation: tuple[str, ...] = ()
    reading: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def study_file(self) -> StudyFile:
        """The study file of the newest session.

        Results can be shown on any machine. A section that is invalid here, for example because the plugin of its batch
        system is not installed, gets its default, and a warning names it once.
        """
        table = {key: value for key, value in self.study.items() if key in StudyFile.model_fields}
        name = str(table.pop("name", ""))
        # A study file needs a name, but a study that a program created may have none.
        given: dict[str, Any] = {"name": "study", "objective": self.objective} | table
        try:
            study = StudyFile.model_validate(given)
        except ValidationError as error:
            unreadable = {str(problem["loc"][0]): problem["msg"] for problem in error.errors() if problem["loc"]}
            for section, reason in unreadable.items():
                _warn_once(f"study {name!r}: cannot read {section!r} as stored, so its default is used: {reason}")
            study = StudyFile.model_validate({key: value for key, value in given.items() if key not in unreadable})
        return study.model_copy(update={"name": name})

    @property
    def mixed_inputs(self) -> tuple[MixedInput, ...]:
        """The inputs of the study's mix, in their order; empty for a study that is tuned for one input."""
        if not self.study_file.is_mix:
            return ()
        inputs = self.study_file.optimised_inputs
        total = fsum(one.weight for one in inputs)
        return tuple(MixedInput(one.name, one.weight / total, self._target_of(one.name)) for one in inputs)

    def _target_of(self, name: str) -> Metric:
        return next(metric for metric in self.metrics[1:] if metric.name.endswith(f"[{name}]"))

    @property
    def workload_facts(self) -> dict[str, Any]:
        """The facts about the problem."""
        return {name: value for name, value in self.facts.items() if name not in self.installation}

    @property
    def installation_facts(self) -> dict[str, Any]:
        """The facts about the program's installation."""
        return {name: self.facts[name] for name in self.installation}

    @property
    def replay(self) -> bool:
        """Whether the study replays recorded runs: nothing runs, and times are simulated."""
        return registry.runs(self.objective) == "recorded"

    @property
    def is_asktell(self) -> bool:
        """Whether another program asks for the runs, makes them and reports their results."""
        return registry.runs(self.objective) == "told"

    @property
    def target(self) -> Metric:
        """The metric that is optimised."""
        return self.metrics[0]

    def differences(self, other: Self) -> list[str]:
        """Return the reasons why measurements of the two cannot be compared; differences in reading do not matter."""
        found = []
        if self.objective != other.objective:
            found.append(f"objective: {self.objective} there, {other.objective} here")
        there, here = self.identity, other.identity
        found.extend(
            f"{key}: {there.get(key, 'nothing')} there, {here.get(key, 'nothing')} here"
            for key in sorted({*there, *here})
            if there.get(key) != here.get(key)
        )
        # A property that one kernel does not report is not a difference.
        found.extend(
            f"machine {key}: {self.machine_identity[key]} there, {other.machine_identity[key]} here"
            for key in sorted(self.machine_identity.keys() & other.machine_identity.keys())
            if not _is_as_large(key, self.machine_identity[key], other.machine_identity[key])
        )
        mine, its = (one.study_file.whole_steps or "nothing" for one in (self, other))
        if mine != its:
            found.append(f"stopping: max_steps {mine} there, {its} here")
        if not found and _common(self.space, other.space) != _common(other.space, self.space):
            found.append("the space: its parameters, values or constraints have changed")
        return found

    def is_upgraded(self, other: Self) -> bool:
        """Return whether the study file says the same, but the program or its files have changed since."""
        same = (self.options, self.metrics) == (other.options, other.metrics)
        same &= all(self.study.get(section) == other.study.get(section) for section in _WHAT_RUNS)
        return (
            same and self.identity != other.identity and not replace(self, identity=other.identity).differences(other)
        )


def _is_as_large(key: str, there: str, here: str) -> bool:
    """Whether a property of two machines agrees; kernels leave slightly different amounts of the same memory."""
    if key != "memory_gib" or not (there.isdigit() and here.isdigit()):
        return there == here
    most = max(int(there), int(here))
    return abs(int(there) - int(here)) <= max(int(most >= _MUCH_GIB), _OF_KERNELS * most)


def _common(space: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return a stored space without facts that the other does not have, since no common rule names them.

    A memory size that agrees with the other's is removed, too, so that small differences do not matter.
    """
    theirs = other.get("facts", {})
    facts = {name: value for name, value in space.get("facts", {}).items() if name in theirs}
    memory = [str(round(values.get(_MEMORY, 0) / 2**30)) for values in (facts, theirs)]
    if _is_as_large("memory_gib", *memory):
        facts.pop(_MEMORY, None)
    return {**space, "facts": facts}


def changed_readings(stored: Definition, now: Definition) -> tuple[str, ...]:
    """Return the names of the readings that differ between the stored definition and the new one."""
    names = sorted({*stored.reading, *now.reading})
    return tuple(name for name in names if stored.reading.get(name) != now.reading.get(name))


@cache
def _warn_once(message: str) -> None:
    _log.warning(plain_line(message))
