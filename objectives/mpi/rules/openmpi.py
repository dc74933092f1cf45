"""Rules of Open MPI's component `tuned`: the text of versions 4 and 5, and the JSON of 6 and later.

The text is what ompi/mca/coll/tuned/coll_tuned_dynamic_file.c reads: collectives, each with communicator sizes, each
with message sizes, the first of which must be 0. The rule with the largest size that is not above the message's
applies, and algorithm 0 leaves the decision to the library. The JSON is described in docs/tuning-apps/coll-tuned.rst of
Open MPI 6: the first rule that fits applies, and without one the library decides. The same page has the numbers of
collectives and algorithms; new versions append to them.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from objectives.base import PlanError
from objectives.mpi.openmpi import algorithm_variable
from objectives.mpi.options import Collective
from objectives.mpi.rules.spans import OPEN_MPI, Span, Table, lookup_size
from spaces import Configuration

COLLECTIVE_NUMBERS: Mapping[Collective, int] = {
    "allgather": 0,
    "allreduce": 2,
    "alltoall": 3,
    "barrier": 6,
    "bcast": 7,
    "reduce": 11,
    "reduce_scatter": 12,
}
ALGORITHMS: Mapping[Collective, tuple[str, ...]] = {
    "allgather": ("linear", "bruck", "recursive_doubling", "ring", "neighbor", "two_proc", "sparbit"),
    "allreduce": (
        "basic_linear",
        "nonoverlapping",
        "recursive_doubling",
        "ring",
        "segmented_ring",
        "rabenseifner",
    ),
    "alltoall": ("linear", "pairwise", "modified_bruck", "linear_sync", "two_proc"),
    "barrier": ("linear", "double_ring", "recursive_doubling", "bruck", "two_proc", "tree"),
    "bcast": (
        "basic_linear",
        "chain",
        "pipeline",
        "split_binary_tree",
        "binary_tree",
        "binomial",
        "knomial",
        "scatter_allgather",
        "scatter_allgather_ring",
    ),
    "reduce": ("linear", "chain", "pipeline", "binary", "binomial", "in-order_binary", "rabenseifner"),
    "reduce_scatter": ("non-overlapping", "recursive_halving", "ring", "butterfly"),
}
"""The names of the algorithms, from number 1 on."""

_USUAL_FAN = 4  # the default of every fan-out and radix
_FANNED = frozenset({"chain", "knomial"})
_FIRST_WITH_JSON = 6


def write(table: Table, version: str) -> dict[str, str]:
    """Return the file for a version of Open MPI.

    Raises:
        PlanError: A decision has a setting that rules cannot express.
    """
    major = version.partition(".")[0]
    if major.isdigit() and int(major) >= _FIRST_WITH_JSON:
        return {"openmpi-rules.json": _json(table)}
    return {"openmpi-rules.conf": _text(table)}


def _text(table: Table) -> str:
    collectives = [(name, dict(own)) for name, own in _by_collective(table)]
    lines = [
        "# How Open MPI 4 and 5 do collective operations, by ranks and message size. To use it:",
        "#   OMPI_MCA_coll_tuned_use_dynamic_rules=1",
        "#   OMPI_MCA_coll_tuned_dynamic_rules_filename=THIS-FILE",
        "# Algorithm 0: the library decides. Sizes are those that Open MPI looks up, see each collective.",
        f"{len(collectives)} # collectives",
    ]
    for name, own in collectives:
        sizes = dict(_with_gaps(own))
        lines += [f"{COLLECTIVE_NUMBERS[name]} # {name}: size is {OPEN_MPI[name]}", f"{len(sizes)} # numbers of ranks"]
        for ranks, spans in sizes.items():
            lines += [f"{ranks} # ranks and more", f"{len(spans)} # rules: size, algorithm, fan-out, segment size"]
            lines += [_line(name, ranks, span) for span in spans]
    return "\n".join(lines) + "\n"


def _with_gaps(own: Mapping[int, Sequence[Span]]) -> Iterator[tuple[int, Sequence[Span]]]:
    """Yield spans by the lowest number of ranks for which they hold; the library decides for numbers that were not
    measured.
    """
    nothing = (Span(0, None, {}),)
    if min(own) > 0:
        yield 0, nothing
    for ranks, spans in own.items():
        yield ranks, spans
        if ranks + 1 not in own:
            yield ranks + 1, nothing


def _line(collective: Collective, ranks: int, span: Span) -> str:
    """Return the rule of a span.

    Raises:
        PlanError: The number of its algorithm is unknown.
    """
    size = 0 if span.first == 0 else _after(collective, ranks, span.first - 1)
    if not span.chosen:
        return f"{size} 0 0 0"
    name, fan, segment = _setting(collective, span.chosen)
    if name not in ALGORITHMS[collective]:
        known = ", ".join(ALGORITHMS[collective])
        msg = f"the number of algorithm {name!r} of {collective} is unknown; known: {known}"
        raise PlanError(msg)
    return f"{size} {ALGORITHMS[collective].index(name) + 1} {fan} {segment} # {name}"


def _after(collective: Collective, ranks: int, message_bytes: int) -> int:
    """Return the smallest lookup size of messages of more than `message_bytes`."""
    return lookup_size(OPEN_MPI[collective], message_bytes, ranks) + 1


def _json(table: Table) -> str:
    collectives: dict[str, list[dict[str, Any]]] = {}
    for name, own in _by_collective(table):
        collectives[name] = [
            {
                "comm_size_min": ranks,
                "comm_size_max": ranks,
                "rules": list(_rules(name, ranks, spans)),
            }
            for ranks, spans in own
        ]
    return json.dumps({"rule_file_version": 3, "module": "tuned", "collectives": collectives}, indent=2) + "\n"


def _rules(collective: Collective, ranks: int, spans: Sequence[Span]) -> Iterator[dict[str, int | str]]:
    for span in spans:
        if span.chosen:
            first = 0 if span.first == 0 else _after(collective, ranks, span.first - 1)
            last = "inf" if span.last is None else lookup_size(OPEN_MPI[collective], span.last, ranks)
            name, fan, segment = _setting(collective, span.chosen)
            yield {"msg_size_min": first, "msg_size_max": last, "alg": name, "faninout": fan, "seg_size": segment}


def _by_collective(table: Table) -> Iterator[tuple[Collective, list[tuple[int, Sequence[Span]]]]]:
    """Yield the collectives with a setting other than the default, each with its spans by number of ranks.

    A barrier has one size.
    """
    for name, cells in groupby(sorted(table), key=lambda cell: cell[0]):
        own = [(ranks, table[name, ranks]) for _, ranks in cells]
        if name == "barrier":
            own = [(ranks, (Span(0, None, spans[0].chosen),)) for ranks, spans in own]
        if any(span.chosen for _, spans in own for span in spans):
            yield name, own


def _setting(collective: Collective, chosen: Configuration) -> tuple[str, int, int]:
    """Return algorithm, fan-out and segment size of a configuration.

    Raises:
        PlanError: It has other settings, too.
    """
    variable = algorithm_variable(collective)
    known = {
        variable: "",
        f"{variable}_chain_fanout": "",
        f"{variable}_knomial_radix": "",
        f"{variable}_segmentsize": "",
    }
    if others := sorted(chosen.keys() - known.keys()):
        msg = (
            f"a rule for {collective} sets algorithm, fan-out and segment size, but cannot set {', '.join(others)}: "
            "tune knobs = ['algorithms'] alone for a rules file"
        )
        raise PlanError(msg)
    name = str(chosen.get(variable))
    fans = [int(value) for key, value in chosen.items() if key.endswith(("_chain_fanout", "_knomial_radix"))]
    fan = fans[0] if fans else _USUAL_FAN if name in _FANNED else 0
    return name, fan, int(chosen.get(f"{variable}_segmentsize", 0))
