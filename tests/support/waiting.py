"""Wait for a state, never for a time."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

# A slow machine must not fail a test, only a state that never comes.
PATIENCE_S = 600.0
_LOOK_S = 0.02


def wait_for(find: Callable[[], Found], name: str = "it", patience_s: float = PATIENCE_S) -> Found:
    """Return what `find` returns as soon as that is true.

    Raises:
        TimeoutError: It never was.
    """
    give_up_at = time.monotonic() + patience_s
    while not (found := find()):
        if time.monotonic() >= give_up_at:
            raise TimeoutError(f"waited {patience_s:g} s in vain for {name}")
        time.sleep(_LOOK_S)
    return found
