"""Labels: the tags and the note that people give a study. They do not affect measurements."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

from autotune.formatting import plain_line

TAG = r"^[A-Za-z0-9][A-Za-z0-9._-]*$"
"""A tag is one word."""

MOST_TAGS, TAG_LETTERS, NOTE_LETTERS = 20, 40, 2000


@dataclass(frozen=True)
class Labels:
    """The tags and the note of a study. Lists leave out `archived` studies by default.

    Raises:
        ValueError: A tag is not one word or too long, there are too many tags, or the note is too long.
    """

    tags: tuple[str, ...] = ()
    note: str = ""
    archived: bool = False

    def __post_init__(self) -> None:
        for tag in self.tags:
            if not re.fullmatch(TAG, tag) or len(tag) > TAG_LETTERS:
                msg = f"tags: {tag!r} was given; a tag is a word of letters, digits and . _ -, of at most {TAG_LETTERS}"
                raise ValueError(msg)
        if len(self.tags) > MOST_TAGS:
            msg = f"tags: {len(self.tags)} were given; a study has at most {MOST_TAGS}"
            raise ValueError(msg)
        if len(self.note) > NOTE_LETTERS:
            msg = f"note: it has {len(self.note)} letters; at most {NOTE_LETTERS} are kept"
            raise ValueError(msg)

    @classmethod
    def of(cls, stored: Mapping[str, Any] | None) -> Self:
        """Read the stored form; return empty labels for None."""
        found = stored or {}
        return cls(tuple(found.get("tags", ())), found.get("note", ""), found.get("archived", False))

    def text(self) -> str:
        """Return the labels in words."""
        tagged = f"tags: {', '.join(self.tags)}" if self.tags else "no tags"
        noted = f"note: {plain_line(self.note)}" if self.note else "no note"
        return "; ".join([tagged, *(["archived"] if self.archived else []), noted])

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form that is stored."""
        return asdict(self) | {"tags": list(self.tags)}
