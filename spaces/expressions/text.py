"""The text of an expression, before it is read."""

import re

# What is in front of a remark; words in quotes may have its sign.
_BEFORE = re.compile(r"(?:[^#'\"]|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")*+(?=#)")


def clean(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split()) if '"' not in text and "'" not in text else text.replace("\n", " ").strip()


def remark_in(text: str) -> int | None:
    """Return where a remark begins; None without one.

    On one line, Python would take for a part of it what the reader wrote on the lines below.
    """
    found = _BEFORE.match(text)
    return None if found is None else found.end()
