"""Write a table of decisions as the file that the study's MPI library reads."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

from objectives.base import PlanError
from objectives.decision import Decision
from objectives.mpi import intel, mpich
from objectives.mpi.knobs import BACKEND, COLLECTIVE
from objectives.mpi.options import NONBLOCKING, Collective
from objectives.mpi.rules import openmpi
from objectives.mpi.rules.spans import INTEL_MPI, Table, group_by_cell, lookup_size
from spaces import Configuration, Value


def write_rules(decisions: Sequence[Decision], facts: Mapping[str, Value]) -> dict[str, str]:
    """Return the file for the library of `facts` (`mpi_library`, `mpi_version`), by its name.

    Raises:
        PlanError: The library has no form for these decisions.
    """
    if any(decision.contexts.get(COLLECTIVE) in NONBLOCKING for decision in decisions):
        msg = (
            "MPI libraries read rules for blocking collectives only. `autotune best` shows the best settings of "
            "nonblocking ones: the program makes calls of MPI_Test itself, and its variables apply to all sizes"
        )
        raise PlanError(msg)
    if any(BACKEND in decision.chosen for decision in decisions):
        raise PlanError("no rule makes an MPI library use another one; `autotune best` shows which is best where")
    spans = group_by_cell(decisions)
    match facts.get("mpi_library"):
        case "Open MPI":
            return openmpi.write(spans, str(facts.get("mpi_version", "")))
        case "MPICH":
            return write_mpich(decisions)
        case "Intel MPI":
            return write_intel(spans)
        case other:
            msg = f"the form of rules for the MPI library {other!r} is unknown; known: Open MPI, MPICH, Intel MPI"
            raise PlanError(msg)


_HEAD = "# How {library} does collective operations. To use it, before mpirun: set -a; . ./THIS-FILE; set +a\n"


def write_mpich(decisions: Sequence[Decision]) -> dict[str, str]:
    """Return the file for MPICH, whose variables set one algorithm for all sizes and ranks.

    If the best setting of a collective differs by size or ranks, the library decides.
    """
    settings: dict[str, list[Configuration]] = {}
    for decision in decisions:
        settings.setdefault(str(decision.contexts[COLLECTIVE]), []).append(
            {} if decision.is_default else dict(decision.chosen)
        )
    lines = []
    for collective, chosen in sorted(settings.items()):
        if all(each == chosen[0] for each in chosen):
            lines += [f"{name}={value}" for name, value in mpich.environment(chosen[0]).items()]
        else:
            lines.append(f"# {collective}: the best algorithm differs by size or ranks, so the library decides")
    return {"mpich.env": _HEAD.format(library="MPICH") + "".join(f"{line}\n" for line in lines)}


def write_intel(table: Table) -> dict[str, str]:
    """Return the file for Intel MPI, whose variables select by size and number of ranks."""
    text = _HEAD.format(library="Intel MPI")
    for collective, cells in groupby(sorted(table), key=lambda cell: cell[0]):
        all_ranks = [ranks for _, ranks in cells]
        if collective not in INTEL_MPI:
            if any(span.chosen for ranks in all_ranks for span in table[collective, ranks]):
                text += f"# {collective}: how Intel MPI counts its message size is not known to us: it decides itself\n"
            continue
        conditions = list(_conditions(collective, table, all_ranks))
        if conditions:
            text += f"{intel.algorithm_variable(collective)}='{';'.join(conditions)}'\n"
    return {"intel-mpi.env": text}


def _conditions(collective: Collective, table: Table, all_ranks: list[int]) -> Iterator[str]:
    for ranks in all_ranks:
        for span in table[collective, ranks]:
            if span.chosen and span.last is not None:
                first, last = (lookup_size(INTEL_MPI[collective], size, ranks) for size in (span.first, span.last))
                yield f"{_number(collective, span.chosen)}:{first}-{last}@{ranks}-{ranks}"


def _number(collective: Collective, chosen: Configuration) -> str:
    variables: Mapping[str, str] = intel.environment(chosen)
    return variables[intel.algorithm_variable(collective)]
