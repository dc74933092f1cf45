"""A text of the user's in which lines are replaced or added: knobs of an input file that was not written for tuning."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from launchers.software.digest import text_digest
from objectives.mentions.templates import filled_in, mentioned_in, template_errors
from objectives.patterns import NO_PATTERN
from spaces import Value
from spaces.mention import Mention
from spaces.parameters.problem import Problem


class LineEdit(BaseModel):
    """A line of an input file: a template. What matches `replaces` gives way to it.

    Without such a line it is put before the first one that matches `before`, or at the start of the file. When a
    parameter in it has no value, the file stays as it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    line: str
    replaces: str
    before: str | None = None

    def changed(self, lines: list[str], values: Mapping[str, Value]) -> list[str]:
        """Return the lines of a file, each with its end, with this one in its place."""
        filled = filled_in(self.line, values)
        if filled is None:
            return lines
        old = [index for index, line in enumerate(lines) if re.search(self.replaces, line.replace("\r\n", "\n"))]
        place = old[0] if old else self.place(lines)
        replaced = set(old)
        kept = [line for index, line in enumerate(lines) if index not in replaced]
        end = "\r\n" if lines[0].endswith("\r\n") else "\n"
        return [*kept[:place], f"{filled}{end}", *kept[place:]]

    def place(self, lines: list[str]) -> int:
        """Return where the line is put when it replaces none; at the end if there is no line to put it before."""
        if self.before is None:
            return 0
        before = (index for index, line in enumerate(lines) if re.search(self.before, line.replace("\r\n", "\n")))
        return next(before, len(lines))


@dataclass(frozen=True)
class EditedFile:
    """A text that is written as `name` into the run's folder, with some of its lines changed."""

    name: str
    text: str
    edits: tuple[LineEdit, ...]

    @property
    def digest(self) -> str:
        """Changes with the text and with what may be changed in it."""
        return text_digest(f"{[edit.model_dump() for edit in self.edits]}{self.text}")

    def mentioned(self, path: str = "") -> list[Mention]:
        """Return what its lines mention; `path` is its own in the study file."""
        places = [f"{path}.lines.{i}.line" for i in range(len(self.edits))]
        return [
            mention
            for edit, place in zip(self.edits, places, strict=True)
            for mention in mentioned_in(edit.line, place)
        ]

    @property
    def copied_from(self) -> None:
        """The file that it is a copy of: none, since it is another text."""
        return

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Write it into a run's folder."""
        lines = [f"{line}\n" for line in self.text.removesuffix("\n").split("\n")]
        for edit in self.edits:
            lines = edit.changed(lines, values)
        target = folder / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(lines), encoding="utf-8", newline="")


def edit_errors(edits: Sequence[LineEdit], place: str) -> Iterator[Problem]:
    """Yield what is wrong with edits; `place` is their path in the study file."""
    for i, edit in enumerate(edits):
        yield from template_errors([(f"{place}.{i}.line", edit.line)])
        for key, pattern in (("replaces", edit.replaces), ("before", edit.before)):
            try:
                re.compile(pattern or "")
            except NO_PATTERN as error:
                yield Problem(f"{pattern!r} is not a regular expression: {error}", f"{place}.{i}.{key}")
