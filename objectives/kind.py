"""What is known of an objective before a study of it is planned."""

from dataclasses import dataclass
from typing import Literal

Runs = Literal["launched", "recorded", "told"]
"""Who makes the runs: autotune launches jobs, they were recorded before, or another program makes and tells them."""


@dataclass(frozen=True)
class Program:
    """A program that an objective needs, for `autotune doctor`.

    `purpose` says what needs it, `package` is Debian's that has it, `otherwise` another way to get it. `needed` ones
    are missed by most users. With `links_blas`, the BLAS libraries that it can use are listed.
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
    """An objective as it is registered. Functions are named as `module:function`, and imported when they are called.

    Args:
        plan: The function that makes a study's program ready, `objectives.registry.plan` says what it is given.
        runs: Who makes the runs.
        is_generic: Whether it stands for any program: the study's name then says which one that is.
        paths: The options that are paths relative to the study file, such as `input`; in a list, `files.*.template`.
        quantities: A function that computes what a run time depends on, for performance models.
        costs: A function that computes what a run time is a sum of, before any measurement.
        layout: A function that says in words how a configuration divides the problem.
        programs: The programs that it needs.
        own_input: A function that puts a user's input, a path, into the options; else it becomes the option `input`.
        facts: The option that takes a file with the size of the problem, for predictions without the program.
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
