"""A proposal of a study file for a command line: which of its words may be knobs, and a file that says so."""

import keyword
import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.machines.this_machine import FACTS
from autotune.planning.known_programs import KnownProgram, known_program
from launchers.mpi import start_commands
from objectives.run_files import name_error
from spaces.expressions.functions import FUNCTIONS

_THREAD_VARIABLES = re.compile(r"(OMP|MKL|OPENBLAS|BLIS|NUMEXPR|GOTO)_NUM_THREADS")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Written as the program will read them back: 007 and 1.50 are left alone.
_WHOLE = re.compile(r"0|[1-9]\d{0,8}")
_DECIMAL = re.compile(r"(?:0|[1-9]\d{0,5})\.\d{1,6}")
_TAKEN = frozenset({*FACTS, *FUNCTIONS, *keyword.kwlist, "true", "false", "none"})


# A larger file is read where it lies, rather than copied for each run.
_MOST_COPIED_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Knob:
    """A number of the command line that could be tuned: `where` says where it stood.

    `kind` says what it counts: `ranks`, which the MPI start command starts; `processes`, which the program starts by
    itself; `threads` of each; or that it is a `knob`. It is empty for a number that may be the size of the problem. The
    `value` is empty for one that is not in the command.
    """

    name: str
    value: str
    where: str
    kind: str

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return _WHOLE.fullmatch(self.value) is not None


@dataclass(frozen=True)
class CommandLineProposal:
    """A command line taken apart: its words and variables are templates that name the knobs.

    `files` are those that each run needs a copy of, by the name that the command has for them.
    """

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    knobs: tuple[Knob, ...]
    files: tuple[tuple[str, Path], ...]
    program: KnownProgram


def propose_knobs(words: Sequence[str]) -> CommandLineProposal:
    """Take a command line apart: `OMP_NUM_THREADS=2 mpirun -np 4 prog -n 100` has threads, ranks, and a number.

    Variables may stand in front, as in a shell, also after `env`.
    """
    parser = _CommandLineParser()
    left = list(words)
    if left[:1] == ["env"] and len(left) > 1 and _VARIABLE.fullmatch(left[1]):
        left = left[1:]
    while len(left) > 1 and _VARIABLE.fullmatch(left[0]):
        parser.read_variable(left.pop(0))
    if len(left) > 1 and (options := _rank_options(Path(left[0]).name)):
        left = parser.drop_start_command(left, options)
    program = known_program(left).with_file_names(left)
    parser.read_program(left, program)
    parser.add_fill_option(program)
    parser.files.update({name: path for name in program.reads if name not in parser.files and (path := _here(name))})
    return CommandLineProposal(
        tuple(parser.argv), tuple(parser.environment), tuple(parser.knobs), tuple(parser.files.items()), program
    )


class _CommandLineParser:
    """A command line while it is taken apart."""

    def __init__(self) -> None:
        self.argv: list[str] = []
        self.environment: list[tuple[str, str]] = []
        self.knobs: list[Knob] = []
        self.files: dict[str, Path] = {}

    def read_variable(self, word: str) -> None:
        name, _, value = word.partition("=")
        if _THREAD_VARIABLES.fullmatch(name) and _WHOLE.fullmatch(value) and int(value) > 0:
            knob = next((knob for knob in self.knobs if knob.kind == "threads"), None)
            knob = knob or self._knob("threads", value, name, "threads")
            self.environment.append((name, f"{{{knob.name}}}"))
        elif _number(value):
            self.environment.append((name, f"{{{self._knob(name.lower(), value, name).name}}}"))
        else:
            self.environment.append((name, _escaped(value)))

    def drop_start_command(self, words: list[str], rank_options: Collection[str]) -> list[str]:
        """Remove the MPI start command with its options, if all of these are known."""
        at = 1
        ranks = None
        while at < len(words) and words[at].startswith("-"):
            option, equals, value = words[at].partition("=")
            if option not in rank_options or (not equals and at + 1 >= len(words)):
                return words
            value = value if equals else words[at + 1]
            if not _WHOLE.fullmatch(value) or int(value) < 1:
                return words
            ranks = value
            at += 1 if equals else 2
        if ranks is None or at >= len(words):
            return words
        self._knob("np", ranks, f"{words[0]} {words[1]}", "ranks")
        return words[at:]

    def read_program(self, words: Sequence[str], known: KnownProgram) -> None:
        for index, word in enumerate(words):
            option, equals, value = word.partition("=")
            if index == 0:
                self.argv.append(_escaped(str(Path(word).absolute()) if _is_file(word) and "/" in word else word))
            elif equals and option.startswith("-") and _number(value):
                self.argv.append(f"{_escaped(option)}={{{self._of_option(option, value, known)}}}")
            elif _number(word):
                self.argv.append(f"{{{self._of_option(known.option_before(words[1:index]), word, known)}}}")
            elif joined := known.joined_option(word):
                self.argv.append(f"{joined[0]}{{{self._of_option(*joined, known)}}}")
            elif equals and option.startswith("-"):
                self.argv.append(f"{_escaped(option)}={self._file(value, known)}")
            else:
                self.argv.append(self._file(word, known))

    def add_fill_option(self, known: KnownProgram) -> None:
        """Name the option by which a program fills the cores that is not in the command, where the other one is."""
        is_said = self._has("ranks") or any(knob.where in known.totals for knob in self.knobs)
        if not known.fills or is_said or self._has("threads") == self._has("processes"):
            return
        kind, options = ("processes", known.processes) if self._has("threads") else ("threads", known.threads)
        self.argv += [options[0], f"{{{self._knob(options[0].lstrip('-'), '', options[0], kind).name}}}"]

    def _file(self, word: str, known: KnownProgram) -> str:
        """Return a word; the file that it names is copied into a run's folder, or is given by its full path.

        So is a folder that is written as a path: nothing says whether it is read or written.
        """
        if ("/" in word or word in {".", ".."}) and not Path(word).is_absolute() and _is_folder(word):
            return _escaped(str(Path(word).resolve()))
        if word.startswith("-") or Path(word).is_absolute() or not _is_file(word):
            return _escaped(word)
        path = Path(word).absolute()
        is_program = path.suffix in known.in_place or os.access(path, os.X_OK)
        if is_program or name_error(word) is not None or path.stat().st_size > _MOST_COPIED_BYTES:
            return _escaped(str(path))
        self.files[word] = path
        return _escaped(word)

    def _of_option(self, option: str, value: str, known: KnownProgram) -> str:
        kind = known.kind_of(option) or ""
        same = next((knob for knob in self.knobs if knob.kind == kind == "threads" and knob.value == value), None)
        if same is not None:
            return same.name
        if kind in {"threads", "processes"} and (not _WHOLE.fullmatch(value) or int(value) < 1 or self._has(kind)):
            kind = ""
        is_generic = kind == "threads" and not known.commands
        wanted = "threads" if is_generic else option.rsplit(" ", maxsplit=1)[-1].lstrip("-+")
        return self._knob(wanted or f"number{len(self.knobs) + 1}", value, option or "an argument", kind).name

    def _has(self, kind: str) -> bool:
        return any(knob.kind == kind for knob in self.knobs)

    def _knob(self, wanted: str, value: str, where: str, kind: str = "") -> Knob:
        known = {knob.name for knob in self.knobs}
        name = _identifier(wanted)
        number = 2
        while name in known or name in _TAKEN:
            name, number = f"{_identifier(wanted)}_{number}", number + 1
        knob = Knob(name, value, where, kind)
        self.knobs.append(knob)
        return knob


def _rank_options(program: str) -> frozenset[str]:
    """Return the options that set the number of ranks; empty if the program is no MPI start command."""
    return frozenset(
        word for command in start_commands() if program in command.commands for word in command.rank_options
    )


def _number(text: str) -> bool:
    return bool(_WHOLE.fullmatch(text) or (_DECIMAL.fullmatch(text) and str(float(text)) == text))


def _identifier(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower() or "number"
    return name if name[0].isalpha() and name.isascii() else f"n_{name}"


def _escaped(word: str) -> str:
    return word.replace("{", "{{").replace("}", "}}")


def _here(name: str) -> Path | None:
    return Path(name).absolute() if _is_file(name) else None


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):
        return False


def _is_file(word: str) -> bool:
    # A name without any sign of a path may be a word that happens to be a file's name, but hardly ever is.
    try:
        return Path(word).is_file()
    except (OSError, ValueError):
        return False
