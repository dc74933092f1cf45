"""MPICH's variables of collective operations, as its `mpivars` lists them.

Their meanings are in doc/mpich/tuning_parameters.md of MPICH's sources. With MPICH 4.0 the program lists fewer
algorithms than with 5.0; what it does not list is not tuned.
"""

import re
from collections.abc import Mapping, Sequence

from objectives.mpi.knobs import Knobs, only_for
from objectives.mpi.options import Collective
from spaces import Choice, Configuration, Integer, Parameter

_PREFIX = "MPIR_CVAR_"
_VARIABLE = re.compile(r"\t(MPIR_CVAR_\w+?) *=(\S*)\t")
_ALGORITHM = re.compile(r"(\w+) +- ")
# What leaves it to the library, what only calls the nonblocking form, and what needs another library.
_LEFT_OUT = frozenset({"auto", "nb", "ccl"})
_RADICES = {"tree": "TREE_KVAL", "recexch": "RECEXCH_KVAL", "k_brucks": "BRUCKS_KVAL", "k_dissemination": "DISSEM_KVAL"}
_FANS = (4, 8, 16)  # 2 is what they have


def parse_variables(text: str) -> dict[str, tuple[str, ...]]:
    """Read what `mpivars` lists: the variables, each with the names of its values where it has names."""
    found: dict[str, tuple[str, ...]] = {}
    last = None
    for line in text.splitlines():
        if match := _VARIABLE.match(line):
            last = match[1]
            found[last] = ()
        elif line.startswith("\t"):
            last = None
        elif last is not None and (match := _ALGORITHM.match(line)):
            found[last] = (*found[last], match[1])
    return found


def algorithm_variable(collective: Collective) -> str:
    """Return the variable that chooses the algorithm of a collective."""
    return f"{_PREFIX}{collective.upper()}_INTRA_ALGORITHM"


def knobs(known: Mapping[str, Sequence[str]], collectives: Sequence[Collective]) -> Knobs:
    """Return what of the `known` variables is tuned."""
    parameters: list[Parameter] = []
    for collective in collectives:
        variable = algorithm_variable(collective)
        names = tuple(name for name in known.get(variable, ()) if name not in _LEFT_OUT)
        if not names:
            continue
        help_ = f"how {collective} is done; unset: the library decides by size and ranks"
        parameters.append(Choice(variable, names, optional=True, when=only_for(collective), help=help_))
        for name, ending in _RADICES.items():
            radix = f"{_PREFIX}{collective.upper()}_{ending}"
            if name in names and radix in known:
                when = f"{variable} == '{name}'"
                help_ = f"how many others a rank of {name} deals with at once"
                parameters.append(Integer(radix, _FANS, optional=True, when=when, help=help_))
    return Knobs(tuple(parameters), (), environment)


def environment(configuration: Configuration) -> dict[str, str]:
    """Return the variables of a run."""
    return {name: str(value) for name, value in configuration.items() if name.startswith(_PREFIX)}
