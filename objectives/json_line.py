"""A line of JSON among whatever else a program prints."""

import json
from typing import Any


def json_object(line: str) -> dict[str, Any]:
    """Return the object that a line is; an empty one if it is none."""
    if not line.startswith("{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
