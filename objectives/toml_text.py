"""Read TOML that others wrote in bounded time and depth, and quote its texts in messages."""

import re
import tomllib
from pathlib import Path
from typing import Any

MAX_BYTES = 2**20
MAX_DEPTH = 32  # tables in tables, lists in lists

# Dotted keys: tomllib needs time that grows with the square of the number of parts.
_LONG_KEY = re.compile(rf"""(?<![\w-])(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){{{MAX_DEPTH + 1}}}""")


def read_toml_text(path: Path) -> str:
    """Return the text of a TOML file.

    Raises:
        OSError: It cannot be read.
        TOMLDecodeError: It is too large.
        UnicodeDecodeError: It is not text.
    """
    with path.open("rb") as file:
        content = file.read(MAX_BYTES + 1)
    if len(content) > MAX_BYTES:
        raise tomllib.TOMLDecodeError(f"it is larger than {MAX_BYTES // 2**20} MiB")
    return content.decode().replace("\r\n", "\n")


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table in a TOML text.

    Raises:
        TOMLDecodeError: It is not TOML, or nested deeper than anything that a person writes.
    """
    too_deep = tomllib.TOMLDecodeError(f"it is nested more than {MAX_DEPTH} deep")
    if _LONG_KEY.search(text):
        raise too_deep
    try:
        table = tomllib.loads(text)
    except RecursionError:
        raise too_deep from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError as error:  # a number with more digits than Python reads
        raise tomllib.TOMLDecodeError(str(error)) from None
    level: list[Any] = [table]
    for _ in range(MAX_DEPTH):
        level = [inner for outer in level for inner in _within(outer)]
    if level:
        raise too_deep
    return table


def quoted(text: str) -> str:
    """Return a text in quotes for a message, with backslashes as they are: `repr` doubles those of a pattern."""
    if not text.isprintable():
        return repr(text)
    mark = '"' if "'" in text else "'"
    return f"{mark}{text}{mark}"


def _within(value: object) -> list[Any]:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for one in inner if isinstance(one, dict | list)]
