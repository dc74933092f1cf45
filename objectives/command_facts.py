"""Facts that a program reports about itself, such as its version and the packages that it was built with."""

import re
import shutil
from collections.abc import Iterator, Mapping

from pydantic import BaseModel, ConfigDict, Field

from launchers.software.ask import find_printed_text
from objectives.base import PlanError
from objectives.patterns import NO_PATTERN, SlowPatternError, find_first
from objectives.quantity import to_number
from objectives.toml_text import quoted
from spaces.parameters.problem import Problem

_TIMEOUT_S = 60
# The facts of every machine; see `objectives.registry.plan`.
_TAKEN = frozenset({"cores", "nodes", "cores_per_node", "threads_per_core", "sockets", "memory_bytes", "described"})


class FactOptions(BaseModel):
    """A fact for rules: the number in the one group of `pattern`, or without a group whether `pattern` matches."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    command: list[str] = Field(min_length=1)
    pattern: str

    def value(self, text: str) -> bool | float:
        """Return the fact that a text holds; a number that is not found is 0.

        Raises:
            SlowPatternError: The search took too long.
        """
        match = find_first(self.pattern, text)
        if not re.compile(self.pattern).groups:
            return match is not None
        return (to_number(match[1]) if match else None) or 0.0


def read_facts(options: Mapping[str, FactOptions], *, ask: bool) -> dict[str, bool | float]:
    """Return the facts; each program runs once. Without `ask`, or if a program cannot run, its output counts as empty.

    Raises:
        PlanError: The search for a fact took too long.
        OSError: A program cannot run at this moment; without its facts the study would be a different one.
    """
    commands = dict.fromkeys(tuple(option.command) for option in options.values())
    texts = {command: _run_program(command) if ask else "" for command in commands}
    facts: dict[str, bool | float] = {}
    for name, option in options.items():
        try:
            facts[name] = option.value(texts[tuple(option.command)])
        except SlowPatternError as error:
            raise PlanError([Problem(str(error), f"options.facts.{name}.pattern")]) from error
    return facts


def fact_errors(options: Mapping[str, FactOptions]) -> Iterator[Problem]:
    """Yield what is wrong with facts."""
    for name, option in options.items():
        place = f"options.facts.{name}"
        if name in _TAKEN or not name.isidentifier():
            why = "is a fact of the machine" if name in _TAKEN else "has other characters than letters, digits and _"
            yield Problem(f"a fact cannot be called {name!r}, which {why}", place)
        try:
            groups = re.compile(option.pattern).groups
        except NO_PATTERN as error:
            yield Problem(f"{quoted(option.pattern)} is not a regular expression: {error}", f"{place}.pattern")
            continue
        if groups > 1:
            yield Problem(
                f"{quoted(option.pattern)} has {groups} groups: one around a number, or none", f"{place}.pattern"
            )


def _run_program(command: tuple[str, ...]) -> str:
    program = shutil.which(command[0])
    return "" if program is None else find_printed_text([program, *command[1:]], _TIMEOUT_S)
