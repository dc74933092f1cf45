"""JSON values: what the service answers, with `~` for the home folder."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Where a path begins: `/srv/home/jo` is another folder than `/home/jo`; `-I/home/jo` and `sqlite:////home/jo` are not.
_HOME = re.compile(rf"(?:(?<=\s-[A-Za-z])|(?<![\w.-])){re.escape(str(Path.home()))}(?![\w.-])")


def with_tilde(text: str) -> str:
    """Return a text with `~` for this user's home folder."""
    return _HOME.sub("~", text)


def json_value(value: Any) -> Any:  # noqa: ANN401  whatever JSON holds
    """Return a JSON-able value with `~` for the home folder; numbers that JSON cannot hold become None."""
    if isinstance(value, str):
        return with_tilde(value)
    if isinstance(value, Mapping):
        return {with_tilde(str(key)): json_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(item) for item in value]
    if isinstance(value, float) and (value != value or abs(value) == float("inf")):  # noqa: PLR0124  not a number
        return None
    return value
