"""Intel MPI's variables of collective operations: the I_MPI_ADJUST family.

Intel documents which algorithms there are by number: "I_MPI_ADJUST Family Environment Variables" in the Developer
Reference for Linux (2020 Update 2; later ones call them presets and number more of them). Of these are tuned the ones
for one node and for several; topology-aware ones, which need a switch hierarchy, are left out.
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
    """Return the variable that chooses the algorithm of a collective."""
    return f"{PREFIX}{collective.upper()}"


def knobs(collectives: Sequence[Collective]) -> Knobs:
    """Return the parameters: one for each collective whose algorithms are known."""
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
    """Return the variables of a run: algorithms by their numbers."""
    numbers = {algorithm_variable(collective): names for collective, names in ALGORITHMS.items()}
    return {name: str(numbers[name][str(value)]) for name, value in configuration.items() if name in numbers}
