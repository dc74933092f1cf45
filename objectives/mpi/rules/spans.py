"""Spans of message sizes with one setting, and the size by which each library looks a rule up."""

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
"""Of the others it is not known to us."""


def lookup_size(meaning: Meaning, message_bytes: int, ranks: int) -> int:
    """Return the size at which a library looks up the rule for messages that the benchmark counts as so large."""
    return _MEANINGS[meaning](message_bytes, ranks)


@dataclass(frozen=True)
class Span:
    """A setting for messages from `first` to `last` bytes, both included; without `chosen`, the library decides."""

    first: int
    last: int | None
    chosen: Configuration


Table = Mapping[tuple[Collective, int], Sequence[Span]]
"""The spans of each collective and number of ranks, from no bytes on and without gaps."""


def group_by_cell(decisions: Sequence[Decision]) -> Table:
    """Return the spans of decisions over `collective` and `ranks`.

    What differs from the default holds from its point up to the last one in a row that says the same: nothing was
    measured beyond, and the library decides there.

    Raises:
        PlanError: the decisions are over other contexts.
    """
    by_cell = sorted(decisions, key=lambda decision: (*_cell(decision), decision.point or 0.0))
    return {cell: tuple(_spans(list(own))) for cell, own in groupby(by_cell, key=_cell)}


def _cell(decision: Decision) -> tuple[Collective, int]:
    if decision.contexts.keys() != {COLLECTIVE, RANKS} or decision.contexts[COLLECTIVE] not in COLLECTIVES:
        msg = (
            f"rules of an MPI library are for decisions over {COLLECTIVE} and {RANKS}, not over "
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
