"""Stored content that is not as autotune wrote it: a disk, a copy or another program has damaged it."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from autotune.errors import StorageError

# Reading a damaged value raises any of these: AttributeError for a number where a table was, AssertionError in Optuna.
_CONTENT_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    RecursionError,
)


_log = logging.getLogger(__name__)


@contextmanager
def left_out_if_damaged(study: str) -> Iterator[None]:
    """Leave a study that cannot be read out of a view of several, with a warning."""
    try:
        with content_errors(f"study {study!r}"):
            yield
    except StorageError as error:
        _log.warning("left out: %s", error)


@contextmanager
def content_errors(what: str) -> Iterator[None]:
    """Turn each error of reading stored content into a `StorageError` about `what`, a study or a storage."""
    try:
        yield
    except _CONTENT_ERRORS as error:
        lines = str(error).splitlines() or [""]
        msg = (
            f"{what} is damaged: {type(error).__name__}: {lines[0]}; restore the storage from a backup, or use another "
            "one, --storage NEW"
        )
        _log.debug("%s", msg, exc_info=True)  # or a mistake of autotune's own
        raise StorageError(msg) from error
