"""The tuned variables of an MPI library: parameters, the rules between them, and the environment of a run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from objectives.mpi.options import Collective
from spaces import Configuration, Constraint, Parameter

COLLECTIVE = "collective"
RANKS = "ranks"
BIND_TO = "bind_to"
TESTS = "test_calls"
PAUSE_US = "progress_thread_us"
BACKEND = "backend"

OURS = frozenset({COLLECTIVE, RANKS, BIND_TO, TESTS, PAUSE_US, BACKEND})
"""Parameters that are not variables of a library: they are passed to the start command or to our program."""


def only_for(collective: Collective) -> str:
    """Return the condition of a parameter that applies to one collective only."""
    return f"{COLLECTIVE} == '{collective}'"


@dataclass(frozen=True)
class Knobs:
    """The tuned variables of a library.

    Args:
        parameters: Its parameters.
        constraints: The rules between them.
        variables: Returns the environment of a run of a configuration: the variables of the library only.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    variables: Callable[[Configuration], Mapping[str, str]]
