"""A table of decisions as the file that the study's MPI library reads."""

from collections.abc import Mapping, Sequence

from objectives.base import PlanError
from objectives.decision import Decision
from objectives.mpi.knobs import BACKEND, COLLECTIVE
from objectives.mpi.options import NONBLOCKING
from objectives.mpi.rules import openmpi, variables
from objectives.mpi.rules.spans import table
from spaces import Value


def rules(decisions: Sequence[Decision], facts: Mapping[str, Value]) -> dict[str, str]:
    """Return the file for the library of `facts` (`mpi_library`, `mpi_version`), by its name.

    Raises:
        PlanError: the library has no form for these decisions.
    """
    if any(decision.contexts.get(COLLECTIVE) in NONBLOCKING for decision in decisions):
        msg = (
            "the rules that MPI libraries read are of blocking collectives; what is best for nonblocking ones is in "
            "`autotune best`: the program makes calls of MPI_Test itself, and is given variables for all sizes"
        )
        raise PlanError(msg)
    if any(BACKEND in decision.chosen for decision in decisions):
        raise PlanError("no rule makes an MPI library use another one; what is best where is in `autotune best`")
    spans = table(decisions)
    match facts.get("mpi_library"):
        case "Open MPI":
            return openmpi.write(spans, str(facts.get("mpi_version", "")))
        case "MPICH":
            return variables.write_mpich(decisions)
        case "Intel MPI":
            return variables.write_intel(spans)
        case other:
            msg = f"no form of rules is known for the MPI library {other!r}; known: Open MPI, MPICH, Intel MPI"
            raise PlanError(msg)
