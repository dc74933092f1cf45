"""The text of an expression before it is parsed."""

import re

# Matches the text before a comment; quoted words may contain the comment sign.
_BEFORE = re.compile(r"(?:[^#'\"]|'(?:\\.|[^'\\])*'|\"(?:\\.|[^\"\\])*\")*+(?=#)")


def clean(text: str) -> str:
    """Return the text on one line."""
    return " ".join(text.split()) if '"' not in text and "'" not in text else text.replace("\n", " ").strip()


def remark_in(text: str) -> int | None:
    """Return the position of a comment; None without one.

    On one line Python would treat the following lines of the text as part of the comment.
    """
    found = _BEFORE.match(text)
    return None if found is None else found.end()
