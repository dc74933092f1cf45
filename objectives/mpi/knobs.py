"""The variables of an MPI library that are tuned: parameters, the rules between them, and how a run is told them."""

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
"""Parameters that are no variables of a library: the start command or our program is told them."""


def only_for(collective: Collective) -> str:
    """Return the condition of a parameter that one collective alone has."""
    return f"{COLLECTIVE} == '{collective}'"


@dataclass(frozen=True)
class Knobs:
    """What of a library is tuned.

    `variables` returns the environment of a run of a configuration, without what is no variable of the library.
    """

    parameters: tuple[Parameter, ...]
    constraints: tuple[Constraint, ...]
    variables: Callable[[Configuration], Mapping[str, str]]
