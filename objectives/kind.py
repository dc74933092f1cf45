"""The registration of an objective: what is known before a study of it is planned."""

from dataclasses import dataclass
from typing import Literal

Runs = Literal["launched", "recorded", "told"]
"""The maker of the runs: autotune launches them, they were recorded earlier, or another program makes and reports them.
"""


@dataclass(frozen=True)
class Program:
    """A program that an objective needs, for `autotune doctor`.

    Args:
        name: The name of the executable.
        purpose: The study that needs it.
        package: The Debian package that has it.
        otherwise: Another way to get it.
        version_argv: The words that make it print its version.
        needed: Whether most users need it.
        links_blas: Whether to list the BLAS libraries that it can use.
    """

    name: str
    purpose: str
    package: str
    otherwise: str
    version_argv: tuple[str, ...] = ()
    needed: bool = False
    links_blas: bool = False


@dataclass(frozen=True)
class ObjectiveKind:
    """An objective as it is registered. Functions are named `module:function` and imported on their first call.

    Args:
        plan: The function that makes a study's program ready; see `objectives.registry.plan` for its arguments.
        runs: The maker of the runs.
        is_generic: Whether it stands for any program; the study's name then says which.
        paths: The options that are paths relative to the study file, such as `input`, or `files.*.template` in a list.
        quantities: A function that computes what a run time depends on, for performance models.
        costs: A function that computes the terms of a run time before any measurement.
        layout: A function that describes in words how a configuration divides the problem.
        programs: The programs that it needs.
        own_input: A function that puts a user's input, a path, into the options. Without it the path becomes the option
            `input`.
        facts: The option for a file with the size of the problem, for predictions without the program.
        rules: A function (`objectives.decision.Rules`) that writes a decision table as files for the program.
    """

    plan: str
    runs: Runs = "launched"
    is_generic: bool = False
    paths: tuple[str, ...] = ()
    quantities: str | None = None
    costs: str | None = None
    layout: str | None = None
    programs: tuple[Program, ...] = ()
    own_input: str | None = None
    facts: str | None = None
    rules: str | None = None
