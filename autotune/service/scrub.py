"""Scrub: what leaves the service names no path of its host."""

import re
from collections.abc import Mapping
from typing import Any

# A slash that begins a word, and at least one more after it: `/usr/bin/pw.x`, but neither `s/m` nor `https://host/page`.
_PATH = re.compile(r"(?<![\w.:/~-])(?:~|file:/{2})?(?:/[^\s/:;,'\"<>|()\[\]{}=]+)+/?")
_SHOWN = "…/"


def without_paths(text: str) -> str:
    """Return a text in which paths have only their last part: `…/pw.x`."""
    return _PATH.sub(lambda found: _SHOWN + found[0].rstrip("/").rpartition("/")[2], text)


def scrubbed(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a JSON-able value without paths, in its keys, too; numbers that JSON cannot hold become None."""
    if isinstance(value, str):
        return without_paths(value)
    if isinstance(value, Mapping):
        return {without_paths(str(key)): scrubbed(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [scrubbed(one) for one in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124  not a number
        return None
    return value
