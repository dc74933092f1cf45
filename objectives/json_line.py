"""A line of JSON among other output of a program."""

import json
from typing import Any


def json_object(line: str) -> dict[str, Any]:
    """Return the JSON object in a line; an empty dict if the line is not an object."""
    if not line.startswith("{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
