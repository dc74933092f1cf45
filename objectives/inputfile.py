"""Input files of a command: templates that are written into a run's folder with the configuration's values."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from launchers import STDERR, STDOUT
from launchers.software.digest import text_digest
from objectives.mentions.templates import filled_in, mentioned_in, template_errors, written
from spaces import Value
from spaces.mention import Mention, key_of
from spaces.parameters.problem import Problem

BRACES = ("{", "}")

MOST_BYTES = 2**20
"""How large a template may be: it is kept with every run, so that the run can be made again."""


@dataclass(frozen=True)
class InputFile:
    """A file that is written as `name` into the run's folder.

    A line that mentions a parameter without a value is left out. With the delimiters `{` and `}` the lines are
    templates as those of a command line are, with `{{` for a brace; with others (`@NAME@`) only names between them,
    and expressions after a `=` (`@= 2 * NAME@`), are replaced, and all else stays as it is; without any, all does.
    """

    name: str
    text: str
    delimiters: tuple[str, ...] = BRACES

    @property
    def digest(self) -> str:
        """Changes with what the file says, whatever the configuration."""
        return text_digest(f"{self.delimiters}{self.text}")

    @property
    def copied_from(self) -> None:
        """The file that it is a copy of: none, since it is written."""
        return

    def mentioned(self, path: str = "") -> list[Mention]:
        """Return what it mentions; `path` is its own in the study file."""
        if self.delimiters == BRACES:
            return [mention for line in self._lines() for mention in mentioned_in(line, path)]
        return [Mention(_text(match), path) for match in self._mark.finditer(self.text)] if self.delimiters else []

    def filled(self, values: Mapping[str, Value]) -> str:
        """Return its text with the values of a configuration, and of its expressions."""
        if not self.delimiters:
            return self.text
        fill = filled_in if self.delimiters == BRACES else self._replaced
        lines = (fill(line, values) for line in self._lines())
        return "".join(line for line in lines if line is not None)

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Write it into a run's folder."""
        target = folder / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.filled(values), encoding="utf-8", newline="")

    def problems(self, place: str) -> list[Problem]:
        """Return what is wrong with its text, each with the number of its line; `place` is that of the text."""
        if self.delimiters != BRACES:
            return []
        hint = 'delimiters = ["@", "@"] is for files full of braces'
        lines = ((number, line.rstrip("\n")) for number, line in enumerate(self._lines(), start=1))
        return [
            Problem(f"line {number} of {self.name}: {problem.message}; {hint}", place)
            for number, line in lines
            for problem in template_errors([(place, line)])
        ]

    @property
    def _mark(self) -> re.Pattern[str]:
        before, after = (re.escape(text) for text in self.delimiters)
        return re.compile(rf"{before}(?:\s*([A-Za-z_]\w*)\s*|=([^\n]+?)){after}")

    def _replaced(self, line: str, values: Mapping[str, Value]) -> str | None:
        if any(key_of(_text(match)) not in values for match in self._mark.finditer(line)):
            return None
        return self._mark.sub(lambda match: written(values[key_of(_text(match))]), line)

    def _lines(self) -> Iterator[str]:
        # Not splitlines(), which takes a form feed for the end of a line.
        return (match[0] for match in re.finditer(r"[^\n]*\n|[^\n]+", self.text))


def _text(match: re.Match[str]) -> str:
    return match[1] or match[2].strip()


def name_error(name: str) -> str | None:
    """Return why a file cannot be had by that name in a run's folder, None if it can."""
    path = PurePosixPath(name)
    if not path.parts or name.endswith("/") or "\0" in name:
        return f"{name!r} is not the name of a file"
    if path.is_absolute() or ".." in path.parts:
        return f"{name!r} leads out of the run's folder: give a path inside of it, without '..'"
    if name in {STDOUT, STDERR} or path.parts[0].startswith(".autotune-"):
        return f"{name!r} is a file of autotune's own in the run's folder: give another name"
    return None
