"""Writing TOML: tables of plain values, one level of tables in them."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """Return a table as TOML that `tomllib` reads back as it was: values first, then its tables.

    Values are strings, whole numbers, finite floats, truth values, lists of them, and tables.
    """
    lines = [f"{_key(key)} = {_value(value)}" for key, value in table.items() if not isinstance(value, Mapping)]
    blocks = ["\n".join(lines)] if lines else []
    for key, value in table.items():
        if isinstance(value, Mapping):
            name = f"{prefix}{_key(key)}"
            blocks.append(f"[{name}]\n{to_toml(value, f'{name}.')}".rstrip("\n"))
    return "\n\n".join(blocks) + ("\n" if not prefix else "")


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, float):
        return repr(value)
    # JSON's strings are TOML's, but for one character that TOML wants escaped.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
