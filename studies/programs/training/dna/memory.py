"""A limit of memory, and the detection of exhausted memory.

On a CPU it is RLIMIT_DATA (setrlimit(2)): Linux' limit of a process's private, writable memory. That includes the
interpreter and torch (some 300 MB before the data), and counts allocated memory, touched or not. Unlike RLIMIT_AS it
excludes the code of libraries and mapped files. It is set after torch is imported and its threads are started, since
both crash if memory is short. On a GPU it is the share of its memory that torch may take; the driver needs some hundred
MB more.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .refusal import RefusedError

# Messages of torch and its libraries, which have no exception for exhausted memory.
SIGNS = (
    "can't allocate memory",
    "not enough memory",
    "bad_alloc",
    "could not create a memory",
    "could not create a primitive",
    "CUDA error: out of memory",
    "CUDA out of memory",
    "STATUS_ALLOC_FAILED",
)


class Limit:
    """The limit in force; without one, `size_bytes` is the memory of the device."""

    def __init__(self, size_bytes: int, before: tuple[int, int] | None) -> None:
        self.size_bytes = size_bytes
        self._before = before

    def lift(self) -> None:
        """Remove the limit of this process."""
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, self._before)


@contextmanager
def limited(device: Any, size_bytes: int | None) -> Iterator[Limit]:
    """Limit the memory of a training on this device; None: no limit but the machine's.

    Raises:
        RefusedError: this machine does not allow such a limit.
    """
    if device.type == "cuda":
        total = torch.cuda.get_device_properties(device).total_memory
        if size_bytes is not None:
            torch.cuda.set_per_process_memory_fraction(min(1.0, size_bytes / total), device)
        limit = Limit(total if size_bytes is None else size_bytes, None)
    elif size_bytes is None:
        limit = Limit(_physical_bytes(), None)
    else:
        before = resource.getrlimit(resource.RLIMIT_DATA)
        try:
            resource.setrlimit(resource.RLIMIT_DATA, (size_bytes, before[1]))
        except ValueError as error:
            raise RefusedError(f"--memory-limit-bytes {size_bytes}: {error}") from error
        limit = Limit(size_bytes, before)
    try:
        yield limit
    finally:
        limit.lift()


def _physical_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_exhausted(error: BaseException) -> bool:
    """Return whether an error means exhausted memory."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in str(error) for sign in SIGNS)


def message(batch_size: int, size_bytes: int) -> str:
    """Return the message for exhausted memory."""
    return f"out of memory: batch size {batch_size} needs more than {size_bytes} bytes"
