"""A page of the documentation, as tests read it: its commands, its files, and what is exempt from being run.

The conventions are those of CONTRIBUTING.md, "Documentation".
"""

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGES = {str(path.relative_to(ROOT)): path for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))}

REASONS = ("needs a cluster", "needs root", "needs a server", "needs the network", "takes long", "an excerpt")
"""Why a block may be exempt: `<!-- not run: REASON -->` before it."""

SHELLS = ("sh", "console")
# First words by which an indented block without a fence is recognized as commands.
_PROGRAMS = re.compile(
    r"\w+=\$\(|(?:[A-Z_]+=\S+ )*"
    r"(?:autotune|\./\S+|curl|optuna-dashboard|python3?|pip|createuser|createdb|sbatch|timeout|kill|chmod)\s"
)
_OURS = ("autotune", "cd")
# The programs that a shipped study needs.
_NEEDED = {"qe": "pw.x", "flags": "gcc", "collectives": "mpicc"}
_NOT_RUN = re.compile(r"<!-- not run: (.+?) -->")
_AFTER = re.compile(r"<!-- after: (.+?) -->")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_KEEPS = re.compile(r"(\w+)=\$\((.+)\)")
_EXIT_CODE = re.compile(r"#.*\bexit code (\d+)")


@dataclass(frozen=True)
class Block:
    """A block of code. `language` is empty for one that is only indented; `exempt` is the reason not to run it."""

    language: str
    lines: tuple[str, ...]
    place: int
    attributes: dict[str, str] = field(default_factory=dict)
    exempt: str | None = None

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self.lines)

    @property
    def is_shell(self) -> bool:
        return self.language in SHELLS or (not self.language and bool(_PROGRAMS.match(f"{self.lines[0]} ")))

    @property
    def is_python(self) -> bool:
        return self.language == "python"

    @property
    def commands(self) -> "list[Command]":
        """The commands of a shell block that is no file."""
        if not self.is_shell or "file" in self.attributes:
            return []
        prompt = "$ " if self.language == "console" else ""
        return [
            Command(line.removeprefix(prompt), number, self.exempt)
            for number, line in self.joined_lines
            if line.strip() and line.startswith(prompt) and not line.startswith("#")
        ]

    @property
    def joined_lines(self) -> list[tuple[int, str]]:
        """Its lines with their numbers on the page; a backslash at its end joins a line with the next."""
        found, number = [], self.numbers.start
        for lines in re.findall(r"(?:.*\\\n)*.*\n", self.text):
            found.append((number, re.sub(r"\\\n\s*", "", lines).rstrip("\n")))
            number += lines.count("\n")
        return found

    @property
    def numbers(self) -> range:
        """The numbers of its lines on the page, without those of a fence."""
        first = self.place + bool(self.language)
        return range(first, first + len(self.lines))


@dataclass(frozen=True)
class Command:
    """A line of shell."""

    line: str
    place: int
    exempt: str | None

    @property
    def words(self) -> str:
        """The command without its comment."""
        return re.sub(r"(?:^|\s{2,})#.*$", "", self.line).rstrip()

    @property
    def kept(self) -> tuple[str, str] | None:
        """Of `NAME=$(COMMAND)`: the variable, and the command whose output it gets."""
        found = _KEEPS.fullmatch(self.words)
        return (found[1], found[2]) if found else None

    @property
    def program(self) -> str:
        """The program that the command starts, after assignments of variables."""
        words = self.kept[1] if self.kept else self.words
        return next((word for word in words.split() if not _ASSIGNMENT.match(word)), "")

    @property
    def exit_code(self) -> int:
        """The exit code named in its comment, else 0."""
        found = _EXIT_CODE.search(self.line)
        return int(found[1]) if found else 0


@dataclass(frozen=True)
class Page:
    """A page, by its name below the root."""

    name: str
    text: str

    @classmethod
    def read(cls, name: str) -> "Page":
        return cls(name, (ROOT / name).read_text(encoding="utf-8"))

    @property
    def after(self) -> str | None:
        """The page whose folder this page continues in."""
        found = _AFTER.search(self.text)
        return str((ROOT / self.name).parent.joinpath(found[1]).resolve().relative_to(ROOT)) if found else None

    @property
    def blocks(self) -> list[Block]:
        return list(_blocks(self.text.splitlines()))

    @property
    def commands(self) -> list[Command]:
        return [command for block in self.blocks for command in block.commands]

    @property
    def is_played(self) -> bool:
        """Whether anything of it is to be run."""
        return any(not command.exempt for command in self.commands)

    @property
    def missing(self) -> list[str]:
        """The programs beside ours that its commands need and this machine does not have."""
        named = {command.program for command in self.commands if not command.exempt}
        text = "".join(block.text for block in self.blocks if not block.exempt and (block.is_shell or block.is_python))
        named |= {program for study, program in _NEEDED.items() if re.search(rf"\b{study}\b", text)}
        return sorted(name for name in named if name not in _OURS and "/" not in name and shutil.which(name) is None)


def _blocks(lines: list[str]) -> Iterator[Block]:
    exempt, number = None, 0
    while number < len(lines):
        line, start = lines[number], number + 1
        number += 1
        if found := _NOT_RUN.search(line):
            exempt = found[1]
        elif fence := re.match(r"(```+)\s*(\w*)(.*)$", line):
            end = next(place for place in range(number, len(lines)) if lines[place].startswith(fence[1]))
            attributes = dict(part.split("=", 1) for part in fence[3].split())
            yield Block(fence[2] or "text", tuple(lines[number:end]), start, attributes, exempt)
            number, exempt = end + 1, None
        elif line.startswith("    ") and (start == 1 or not lines[start - 2].strip()):
            while number < len(lines) and lines[number].startswith("    "):
                number += 1
            yield Block("", tuple(one[4:] for one in lines[start - 1 : number]), start, {}, exempt)
            exempt = None
        elif line.strip():
            exempt = None
