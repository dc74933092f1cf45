"""One rank of a training, from its command line to its exit code.

Exit codes: 0 trained, stopped early, or stopped on request; 2 wrong options or data; 3 the training diverged;
12 (ENOMEM) out of memory.
"""

import sys
import time
from pathlib import Path

import protocol
from parallel import join

from . import loop, memory
from .group import Group
from .refusal import DivergedError, RefusedError
from .settings import Settings

WRONG, DIVERGED, OUT_OF_MEMORY = 2, 3, 12
_CAUSE_S = 2.0  # time for another rank, whose error may have caused this one, to end this process
_PATIENCE_S = 600.0  # between two sums of a rank; a validation may be between them


class NeverAsked:
    """For the other ranks: only the first one acts on requests to stop, and they end with it."""

    asked = False


def run(settings: Settings, rank: int = 0, meeting: Path | None = None) -> int:
    """Train with the other ranks, connected through `meeting`; return the exit code."""
    stop = NeverAsked() if rank else protocol.StopRequest()
    try:
        return _train(settings, Group(rank, settings.ranks), meeting, stop)
    except RefusedError as error:
        _print_error(str(error), rank)
        return WRONG
    except DivergedError as error:
        _print_error(f"diverged: {error}", rank)
        return DIVERGED


def _train(settings: Settings, group: Group, meeting: Path | None, stop: loop.Stop) -> int:
    device = loop.prepare(settings, group)
    if meeting is not None:
        join(meeting, group.rank, group.ranks, device, patience_s=_PATIENCE_S)
    with memory.limited(device, settings.memory_limit_bytes) as limit:
        try:
            loop.train(settings, device, group, stop, protocol.Checkpoint())
        except (MemoryError, RuntimeError) as error:
            if not memory.is_exhausted(error):
                if group.ranks > 1:
                    time.sleep(_CAUSE_S)
                raise
            limit.lift()  # the message needs some memory, too
            _print_error(memory.message(settings.batch_size, limit.size_bytes), group.rank)
            return OUT_OF_MEMORY
    return 0


def _print_error(message: str, rank: int) -> None:
    if rank:  # the first rank may have the same error, and then ends this process
        time.sleep(_CAUSE_S)
    print(message, file=sys.stderr)
