"""A proposal of a study file for a command line: which of its words may be knobs, and a file that says so."""

import keyword
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.machines.this_machine import FACTS
from launchers.mpi import start_commands
from spaces.expressions.functions import FUNCTIONS

_THREAD_OPTIONS = frozenset({"-t", "-T", "--threads", "--nthreads", "--num-threads", "-nt"})
_THREAD_VARIABLES = re.compile(r"(OMP|MKL|OPENBLAS|BLIS|NUMEXPR|GOTO)_NUM_THREADS")
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
# Written as the program will read them back: 007 and 1.50 are left alone.
_WHOLE = re.compile(r"0|[1-9]\d{0,8}")
_DECIMAL = re.compile(r"(?:0|[1-9]\d{0,5})\.\d{1,6}")
_TAKEN = frozenset({*FACTS, *FUNCTIONS, *keyword.kwlist, "true", "false", "none"})


@dataclass(frozen=True)
class Knob:
    """A number of the command line that could be tuned: `where` says where it stood."""

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
    """A command line taken apart: its words and variables are templates that name the knobs."""

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    knobs: tuple[Knob, ...]


def propose_knobs(words: Sequence[str]) -> CommandLineProposal:
    """Take a command line apart: `OMP_NUM_THREADS=2 mpirun -np 4 prog -n 100` has threads, ranks, and a number.

    Variables may stand in front, as in a shell, also after `env`.
    """
    parts = _Apart()
    left = list(words)
    if left[:1] == ["env"] and len(left) > 1 and _VARIABLE.fullmatch(left[1]):
        left = left[1:]
    while len(left) > 1 and _VARIABLE.fullmatch(left[0]):
        parts.variable(left.pop(0))
    if len(left) > 1 and (options := _rank_options(Path(left[0]).name)):
        left = parts.starter(left, options)
    parts.program(left)
    return CommandLineProposal(tuple(parts.argv), tuple(parts.environment), tuple(parts.knobs))


class _Apart:
    """A command line while it is taken apart."""

    def __init__(self) -> None:
        self.argv: list[str] = []
        self.environment: list[tuple[str, str]] = []
        self.knobs: list[Knob] = []

    def variable(self, word: str) -> None:
        name, _, value = word.partition("=")
        if _THREAD_VARIABLES.fullmatch(name) and _WHOLE.fullmatch(value) and int(value) > 0:
            knob = next((knob for knob in self.knobs if knob.kind == "threads"), None)
            knob = knob or self._knob("threads", value, name, "threads")
            self.environment.append((name, f"{{{knob.name}}}"))
        elif _number(value):
            self.environment.append((name, f"{{{self._knob(name.lower(), value, name).name}}}"))
        else:
            self.environment.append((name, _escaped(value)))

    def starter(self, words: list[str], rank_options: Collection[str]) -> list[str]:
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

    def program(self, words: Sequence[str]) -> None:
        before = ""
        for index, word in enumerate(words):
            option, equals, value = word.partition("=")
            if index == 0:
                self.argv.append(_escaped(_full(word) if "/" in word else word))
            elif equals and option.startswith("-") and _number(value):
                self.argv.append(f"{_escaped(option)}={{{self._of_option(option, value)}}}")
            elif _number(word):
                named = before if before.startswith("-") else ""
                self.argv.append(f"{{{self._of_option(named, word)}}}")
            elif (joined := re.fullmatch(r"(-[A-Za-z])(\d{1,9})", word)) and joined[1] in {"-j", "-t", "-T", "-p"}:
                self.argv.append(f"{joined[1]}{{{self._of_option(joined[1], joined[2])}}}")
            else:
                self.argv.append(_escaped(_full(word)))
            before = word

    def _of_option(self, option: str, value: str) -> str:
        if option in _THREAD_OPTIONS and _WHOLE.fullmatch(value) and int(value) > 0 and not self._has("threads"):
            return self._knob("threads", value, option, "threads").name
        return self._knob(option.lstrip("-") or f"number{len(self.knobs) + 1}", value, option or "an argument").name

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


def _full(word: str) -> str:
    """Return the full path of a file, since a run has a folder of its own."""
    # A name without any sign of a path may be a word that happens to be a file's name, but hardly ever is.
    try:
        return str(Path(word).absolute()) if not word.startswith("-") and Path(word).is_file() else word
    except (OSError, ValueError):
        return word
