"""The command: read the options, train, and say by the exit code how it ended.

Exit codes: 0 trained, stopped early, or stopped on request; 2 something given is wrong; 3 the training diverged;
12 (ENOMEM) out of memory.
"""

import sys

import protocol

from . import loop, memory
from .refusal import DivergedError, RefusedError
from .settings import Settings, from_command_line

WRONG, DIVERGED, OUT_OF_MEMORY = 2, 3, 12


def main() -> int:
    """Run the program, and return its exit code."""
    settings = from_command_line(sys.argv[1:])
    stop = protocol.StopRequest()
    try:
        return _train(settings, stop)
    except RefusedError as error:
        print(error, file=sys.stderr)
        return WRONG
    except DivergedError as error:
        print(f"diverged: {error}", file=sys.stderr)
        return DIVERGED


def _train(settings: Settings, stop: protocol.StopRequest) -> int:
    device = loop.prepare(settings)
    with memory.limited(device, settings.memory_limit_bytes) as limit:
        try:
            loop.train(settings, device, stop, protocol.Checkpoint())
        except (MemoryError, RuntimeError) as error:
            if not memory.is_exhausted(error):
                raise
            limit.lift()  # what follows needs some memory, too
            print(memory.message(settings.batch_size, limit.size_bytes), file=sys.stderr)
            return OUT_OF_MEMORY
    return 0


if __name__ == "__main__":
    sys.exit(main())
