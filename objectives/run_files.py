"""The files of a run's folder: written from a template, copied, or copied with some lines changed."""

import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict

from launchers import STDERR, STDOUT
from launchers.software.digest import text_digest
from objectives.mentions.templates import fill_in, has_placeholder, mentions_in, template_errors, value_text
from objectives.patterns import NO_PATTERN
from objectives.toml_text import quoted
from spaces import Value
from spaces.mention import Mention, key_of
from spaces.parameters.problem import Problem

BRACES = ("{", "}")

NO_DELIMITERS = "delimiters = [] leaves all braces as they are"
"""The remedy for a file without placeholders."""

_MOST_SHOWN = 3

MOST_BYTES = 2**20
"""The largest size of a template: it is stored with every run, so that the run can be made again."""


@dataclass(frozen=True)
class InputFile:
    """A file that is written as `name` into the run's folder.

    A line that mentions a parameter without a value is left out; `{?NAME}` (`@?NAME@`) is replaced by nothing, and ties
    the line to the parameter. With the delimiters `{` and `}` each line is a
    template as in a command line, with `{{` for a brace. With other delimiters (`@NAME@`) only names between them and
    expressions after `=` (`@= 2 * NAME@`) are replaced. Without delimiters nothing is.
    """

    name: str
    text: str
    delimiters: tuple[str, ...] = BRACES

    @property
    def digest(self) -> str:
        """The digest of its text and delimiters; it does not depend on the configuration."""
        return text_digest(f"{self.delimiters}{self.text}")

    @property
    def copied_from(self) -> None:
        """None: the file is written, not copied."""
        return

    def mentions(self, path: str = "") -> list[Mention]:
        """Return what it mentions; `path` is that of its options in the study file."""
        if self.delimiters == BRACES:
            return [mention for line in self._lines() for mention in mentions_in(line, path)]
        return [Mention(_text(match), path) for match in self._mark.finditer(self.text)] if self.delimiters else []

    def fill_in(self, values: Mapping[str, Value]) -> str:
        """Return its text with the values of a configuration and of its expressions."""
        if not self.delimiters:
            return self.text
        fill = fill_in if self.delimiters == BRACES else self._replace_values
        lines = (fill(line, values) for line in self._lines())
        return "".join(line for line in lines if line is not None)

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Write it into a run's folder."""
        target = folder / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(self.fill_in(values), encoding="utf-8", newline="")

    def problems(self, place: str) -> list[Problem]:
        """Return what is wrong with its text, each with the line number; `place` is the path of the text in the study
        file.
        """
        if self.delimiters != BRACES:
            return []
        found = [
            f"line {number} of {self.name}: {problem.message}"
            for number, line in enumerate(self._lines(), start=1)
            for problem in template_errors([(place, line.rstrip("\n"))])
        ]
        if found and not has_placeholder(self.text):
            msg = f"{self.name} has braces, but no placeholder such as {{np}}: {NO_DELIMITERS}"
            return [Problem(msg, place)]
        others = f" (and {len(found) - _MOST_SHOWN} more such places)" if len(found) > _MOST_SHOWN else ""
        return [
            Problem(f'{text}{others}; delimiters = ["@", "@"] is for files full of braces', place)
            for text in found[: 1 if others else None]
        ]

    @property
    def _mark(self) -> re.Pattern[str]:
        before, after = (re.escape(text) for text in self.delimiters)
        return re.compile(rf"{before}(\??)(?:\s*([A-Za-z_]\w*)\s*|=([^\n]+?)){after}")

    def _replace_values(self, line: str, values: Mapping[str, Value]) -> str | None:
        if any(key_of(_text(match)) not in values for match in self._mark.finditer(line)):
            return None
        return self._mark.sub(lambda match: "" if match[1] else value_text(values[key_of(_text(match))]), line)

    def _lines(self) -> Iterator[str]:
        # Not splitlines(), which also splits at form feeds.
        return (match[0] for match in re.finditer(r"[^\n]*\n|[^\n]+", self.text))


def _text(match: re.Match[str]) -> str:
    return match[2] or match[3].strip()


def name_error(name: str) -> str | None:
    """Return why a run's folder cannot have a file of that name; None if it can."""
    path = PurePosixPath(name)
    if not path.parts or name.endswith("/") or "\0" in name:
        return f"{name!r} is not the name of a file"
    if path.is_absolute() or ".." in path.parts:
        return f"{name!r} leads out of the run's folder: give a path inside of it, without '..'"
    if name in {STDOUT, STDERR} or path.parts[0].startswith(".autotune-"):
        return f"{name!r} is reserved for autotune in the run's folder: give another name"
    return None


# Separators between the words of an input file: blanks, quotes and punctuation.
_BETWEEN_WORDS = re.compile(r"""[\s"'`=,;:()<>\[\]{}]+""")


@dataclass(frozen=True)
class CopiedFile:
    """A file that is copied from `source` into the run's folder as `name`, whatever the configuration.

    Each run gets its own copy, so that nothing it writes reaches the original.
    """

    name: str
    source: Path
    digest: str

    def mentions(self, path: str = "") -> list[Mention]:
        """Return an empty list: the file has no placeholders."""
        del path
        return []

    @property
    def copied_from(self) -> str:
        """The path of the original."""
        return str(self.source)

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Copy it into a run's folder."""
        del values
        target = folder / self.name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(self.source, target)


def short_text(path: Path) -> str | None:
    """Return the text of a file; None if it is not UTF-8, or too large for a person to have written it.

    Raises:
        OSError: It cannot be read.
    """
    if path.stat().st_size > MOST_BYTES:
        return None
    text = path.read_bytes()
    try:
        return None if b"\0" in text else text.decode()
    except UnicodeDecodeError:
        return None


def mentioned_files(text: str, folder: Path) -> dict[str, Path]:
    """Return the files in `folder` that a text mentions, and those that these mention in turn: relative name -> file.

    Names that lead out of the folder are left out.
    """
    known: dict[str, Path] = {}
    texts = [text]
    while texts:
        for name, path in _find_mentions(texts.pop(), folder):
            if name not in known:
                known[name] = path
                inner = short_text(path)
                texts += [] if inner is None else [inner]
    return known


def _find_mentions(text: str, folder: Path) -> Iterator[tuple[str, Path]]:
    for word in dict.fromkeys(_BETWEEN_WORDS.split(text)):
        if not word or name_error(word) is not None:
            continue
        path = folder / word
        try:
            if path.is_file():
                yield Path(word).as_posix(), path
        except OSError:  # too long for the name of a file
            continue


class LineEdit(BaseModel):
    """A line of an input file: a template that takes the place of the lines that match `replaces`.

    If no line matches, it is inserted before the first line that matches `before`, or at the start of the file. While a
    parameter in it has no value, the file is left as it is.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    line: str
    replaces: str
    before: str | None = None

    def apply(self, lines: list[str], values: Mapping[str, Value]) -> list[str]:
        """Return the lines of a file, each with its end, with this edit made."""
        filled = fill_in(self.line, values)
        if filled is None:
            return lines
        old = [index for index, line in enumerate(lines) if re.search(self.replaces, line.replace("\r\n", "\n"))]
        place = old[0] if old else self.place(lines)
        replaced = set(old)
        kept = [line for index, line in enumerate(lines) if index not in replaced]
        end = "\r\n" if lines[0].endswith("\r\n") else "\n"
        return [*kept[:place], f"{filled}{end}", *kept[place:]]

    def place(self, lines: list[str]) -> int:
        """Return where the line is inserted if it replaces none; the end if no line matches `before`."""
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
        """The digest of the text and of its edits."""
        return text_digest(f"{[edit.model_dump() for edit in self.edits]}{self.text}")

    def mentions(self, path: str = "") -> list[Mention]:
        """Return what its lines mention; `path` is that of its options in the study file."""
        places = [f"{path}.lines.{i}.line" for i in range(len(self.edits))]
        return [
            mention for edit, place in zip(self.edits, places, strict=True) for mention in mentions_in(edit.line, place)
        ]

    @property
    def copied_from(self) -> None:
        """None: what is written differs from the original."""
        return

    def write(self, folder: Path, values: Mapping[str, Value]) -> None:
        """Write it into a run's folder."""
        lines = [f"{line}\n" for line in self.text.removesuffix("\n").split("\n")]
        for edit in self.edits:
            lines = edit.apply(lines, values)
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
                yield Problem(f"{quoted(pattern or '')} is not a regular expression: {error}", f"{place}.{i}.{key}")
