"""A limit of memory, and how running into it is known.

On a CPU it is RLIMIT_DATA (setrlimit(2)): Linux' limit of the private memory that a process may write to. It is a limit
of all of it, that of the interpreter and of torch included (some 300 MB before the data), and of what is asked
for, not of what was touched. Unlike RLIMIT_AS it leaves out the code of libraries and files that are mapped. It is set
after torch was imported and its threads were started, as both end hard when memory is short. On a GPU it is the part
of its memory that torch takes; the driver's own some hundred MB come on top.
"""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from .refusal import RefusedError

# What torch and its libraries say, which have no exception of their own for it.
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
    """A limit in force; `size_bytes` is it, or what there is on the device without one."""

    def __init__(self, size_bytes: int, before: tuple[int, int] | None) -> None:
        self.size_bytes = size_bytes
        self._before = before

    def lift(self) -> None:
        """Take the limit of a process away again."""
        if self._before is not None:
            resource.setrlimit(resource.RLIMIT_DATA, self._before)


@contextmanager
def limited(device: Any, size_bytes: int | None) -> Iterator[Limit]:
    """Limit the memory that a training on this device may use; None: no limit but that of the machine.

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
    """Whether this is how memory that ran out looks."""
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(sign in str(error) for sign in SIGNS)


def message(batch_size: int, size_bytes: int) -> str:
    """Return what is said then."""
    return f"out of memory: batch size {batch_size} needs more than {size_bytes} bytes"
