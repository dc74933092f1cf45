"""Write TOML: tables of plain values and of further tables."""

import json
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(table: Mapping[str, Any], prefix: str = "") -> str:
    """Return a table as TOML that `tomllib` reads back unchanged: its values first, then its tables.

    Args:
        table: Strings, integers, finite floats, booleans, lists of these, and tables.
        prefix: The path of the table, with a final dot, in a recursive call.
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
    return text_to_toml(value) if isinstance(value, str) else json.dumps(value)


def text_to_toml(text: str) -> str:
    """Return a string as TOML, with escapes for what a terminal might obey.

    TOML has the same strings as JSON, except that DEL must be escaped, and that escapes are no surrogate pairs.

    Raises:
        UnicodeEncodeError: The text cannot be written as UTF-8.
    """
    text.encode()
    shown = json.dumps(text, ensure_ascii=False)
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in shown)
