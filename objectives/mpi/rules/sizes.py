"""What "message size" means where a library looks a rule up: not the same for all collectives, nor for all libraries.

Open MPI: the calls of `ompi_coll_tuned_get_target_method_params` in ompi/mca/coll/tuned/coll_tuned_decision_dynamic.c
(open-mpi/ompi issue 7672 says how it surprises); a test finds each meaning anew with the library that is installed.
"""

from collections.abc import Callable, Mapping
from typing import Literal

from objectives.mpi.options import Collective

Meaning = Literal["message", "message times ranks", "nothing"]

_MEANINGS: Mapping[Meaning, Callable[[int, int], int]] = {
    "message": lambda message_bytes, _: message_bytes,
    "message times ranks": lambda message_bytes, ranks: message_bytes * ranks,
    "nothing": lambda _, __: 0,
}

OPEN_MPI: Mapping[Collective, Meaning] = {
    "allreduce": "message",
    "reduce": "message",
    "bcast": "message",
    "reduce_scatter": "message",
    "allgather": "message times ranks",
    "alltoall": "message times ranks",
    "barrier": "nothing",
}

INTEL_MPI: Mapping[Collective, Meaning] = {"allreduce": "message"}
"""Of the others it is not known to us."""


def looked_up(meaning: Meaning, message_bytes: int, ranks: int) -> int:
    """Return the size at which a library looks up the rule for messages that the benchmark counts as so large."""
    return _MEANINGS[meaning](message_bytes, ranks)
