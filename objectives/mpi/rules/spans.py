"""Spans of message sizes with one setting, and the sizes by which libraries look rules up.

Which size Open MPI looks up differs between collectives: see the calls of `ompi_coll_tuned_get_target_method_params` in
ompi/mca/coll/tuned/coll_tuned_decision_dynamic.c (open-mpi/ompi issue 7672 describes the surprise). A test measures
each with the installed library.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal, cast

from objectives.base import PlanError
from objectives.decision import Decision
from objectives.mpi.knobs import COLLECTIVE, RANKS
from objectives.mpi.options import COLLECTIVES, Collective
from spaces import Configuration

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
"""The meanings for other collectives are not documented."""


def lookup_size(meaning: Meaning, message_bytes: int, ranks: int) -> int:
    """Return the size by which a library looks up the rule for messages of this size in the benchmark."""
    return _MEANINGS[meaning](message_bytes, ranks)


@dataclass(frozen=True)
class Span:
    """A setting for messages from `first` to `last` bytes, both included; without `chosen`, the library decides."""

    first: int
    last: int | None
    chosen: Configuration


Table = Mapping[tuple[Collective, int], Sequence[Span]]
"""The spans of each collective and number of ranks, from 0 bytes on and without gaps."""


def group_by_cell(decisions: Sequence[Decision]) -> Table:
    """Return the spans of decisions over `collective` and `ranks`.

    A setting other than the default holds from its point to the last consecutive point with the same setting. Beyond
    that nothing was measured, so the library decides.

    Raises:
        PlanError: The decisions are over other contexts.
    """
    by_cell = sorted(decisions, key=lambda decision: (*_cell(decision), decision.point or 0.0))
    return {cell: tuple(_spans(list(own))) for cell, own in groupby(by_cell, key=_cell)}


def _cell(decision: Decision) -> tuple[Collective, int]:
    if decision.contexts.keys() != {COLLECTIVE, RANKS} or decision.contexts[COLLECTIVE] not in COLLECTIVES:
        msg = (
            f"rules of an MPI library need decisions over {COLLECTIVE} and {RANKS}, not over "
            f"{', '.join(decision.contexts) or 'nothing'}: [decisions] over = ['{COLLECTIVE}', '{RANKS}']"
        )
        raise PlanError(msg)
    return cast("Collective", decision.contexts[COLLECTIVE]), int(decision.contexts[RANKS])


def _spans(decisions: Sequence[Decision]) -> Iterator[Span]:
    begin = 0
    for _, group in groupby(decisions, key=lambda decision: {} if decision.is_default else dict(decision.chosen)):
        own = list(group)
        if own[0].is_default:
            continue
        first, last = int(own[0].point or 0), int(own[-1].point or 0)
        if first > begin:
            yield Span(begin, first - 1, {})
        yield Span(first, last, own[0].chosen)
        begin = last + 1
    yield Span(begin, None, {})
