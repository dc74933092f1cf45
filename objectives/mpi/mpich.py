"""MPICH's variables of collective operations, as its `mpivars` lists them.

Their meanings are in doc/mpich/tuning_parameters.md of MPICH's sources. MPICH 4.0 lists fewer algorithms than 5.0; what
is not listed is not tuned.
"""

import re
from collections.abc import Mapping, Sequence

from objectives.mpi.knobs import Knobs, only_for
from objectives.mpi.options import Collective
from spaces import Choice, Configuration, Integer, Parameter

_PREFIX = "MPIR_CVAR_"
_VARIABLE = re.compile(r"\t(MPIR_CVAR_\w+?) *=(\S*)\t")
_ALGORITHM = re.compile(r"(\w+) +- ")
# Not algorithms: the library's own choice, the nonblocking form of the call, and a form that needs another library.
_LEFT_OUT = frozenset({"auto", "nb", "ccl"})
_RADICES = {"tree": "TREE_KVAL", "recexch": "RECEXCH_KVAL", "k_brucks": "BRUCKS_KVAL", "k_dissemination": "DISSEM_KVAL"}
_FANS = (4, 8, 16)  # 2 is the default


def parse_variables(text: str) -> dict[str, tuple[str, ...]]:
    """Parse the output of `mpivars`: variables, with the names of their values for those that have names."""
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
    """Return the variable that selects the algorithm of a collective."""
    return f"{_PREFIX}{collective.upper()}_INTRA_ALGORITHM"


def knobs(known: Mapping[str, Sequence[str]], collectives: Sequence[Collective]) -> Knobs:
    """Return what is tuned of the `known` variables."""
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
