"""Intel MPI's variables of collective operations: the I_MPI_ADJUST family.

Intel documents the algorithms by number: "I_MPI_ADJUST Family Environment Variables" in the Developer Reference for
Linux (2020 Update 2; later editions call them presets and list more). We tune those for one and for several nodes, and
leave out topology-aware ones, which need a switch hierarchy.
"""

from collections.abc import Mapping, Sequence

from objectives.mpi.knobs import Knobs, only_for
from objectives.mpi.options import Collective
from spaces import Choice, Configuration

PREFIX = "I_MPI_ADJUST_"

ALGORITHMS: Mapping[Collective, Mapping[str, int]] = {
    "allreduce": {
        "recursive_doubling": 1,
        "rabenseifner": 2,
        "reduce_bcast": 3,
        "gather_scatter": 5,
        "shumilin_ring": 7,
        "ring": 8,
        "knomial": 9,
    },
    "allgather": {"recursive_doubling": 1, "bruck": 2, "ring": 3, "knomial": 5},
    "alltoall": {"bruck": 1, "isend_irecv": 2, "pairwise": 3, "plum": 4},
}


def algorithm_variable(collective: Collective) -> str:
    """Return the variable that selects the algorithm of a collective."""
    return f"{PREFIX}{collective.upper()}"


def knobs(collectives: Sequence[Collective]) -> Knobs:
    """Return the parameters: one for each collective whose algorithms are documented."""
    parameters = tuple(
        Choice(
            algorithm_variable(collective),
            tuple(ALGORITHMS[collective]),
            optional=True,
            when=only_for(collective),
            help=f"how {collective} is done; unset: the library decides by size and ranks",
        )
        for collective in collectives
        if collective in ALGORITHMS
    )
    return Knobs(parameters, (), environment)


def environment(configuration: Configuration) -> dict[str, str]:
    """Return the variables of a run, with the numbers of the algorithms."""
    numbers = {algorithm_variable(collective): names for collective, names in ALGORITHMS.items()}
    return {name: str(numbers[name][str(value)]) for name, value in configuration.items() if name in numbers}
