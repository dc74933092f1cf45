"""Exhaust the file descriptors of this process."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def none_left() -> Iterator[None]:
    """Make every attempt to open a file fail with EMFILE."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
