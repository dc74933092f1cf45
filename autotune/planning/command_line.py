"""Propose knobs for a command line: the words in it that could be tuned, and the files that it reads."""

import keyword
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count, pairwise
from pathlib import Path

from autotune.errors import StudyFileError
from autotune.machines.this_machine import FACTS
from autotune.planning.knob_values import expanded_note, parse_values
from autotune.planning.known_programs import KnownProgram, recognise_program
from autotune.planning.shell_words import is_file, read_shell_words
from autotune.planning.start_line import StartLine, read_start_line
from objectives.run_files import name_error
from spaces.expressions.functions import FUNCTIONS

_THREAD_VARIABLES = re.compile(r"(OMP|MKL|OPENBLAS|BLIS|NUMEXPR|GOTO)_NUM_THREADS")
# Only numbers that are written back unchanged: not 007 or 1.50. Learning rates are written as 3e-4.
_WHOLE = re.compile(r"0|[1-9]\d{0,8}")
_DECIMAL = re.compile(r"(?:0|[1-9]\d{0,5})\.\d{1,6}")
_SCIENTIFIC = re.compile(r"[1-9](?:\.\d{1,6})?[eE]-\d{1,2}")
# A name with a range, or with a list of words. Code in a command has braces too, such as awk's {s+=$1}.
_WORD = r"[^=,;$\"'()\[\]{}\n][^,;$\"'()\[\]{}\n]*"
_VALUES = re.compile(
    rf"\{{([A-Za-z_]\w*=(?:\d+\.\.\d+(?:[*+]\d+)?|{_WORD}(?:,{_WORD})+))\}}",
    re.ASCII,
)
_TAKEN = frozenset({*FACTS, *FUNCTIONS, *keyword.kwlist, "true", "false", "none"})
# After these, most programs name their input.
_INPUT_OPTIONS = frozenset({"-i", "-in", "-inp", "-input", "--input"})
# Larger files are not copied for each run, but read at their place.
_MOST_COPIED_BYTES = 64 * 2**20


@dataclass(frozen=True)
class Knob:
    """A number of the command line that could be tuned.

    Attributes:
        name: The name of the parameter.
        value: The number in the command; empty if the command does not contain it.
        where: The option or variable that has the number.
        kind: The things that it counts: `ranks` (started by the MPI start command), `processes` (started by the program
            itself) or `threads` of each; `knob` for another known option; empty if it may be the size of the problem.
        values: The values to try, the default first, if the command gives them; else empty.
    """

    name: str
    value: str
    where: str
    kind: str
    values: tuple[int | str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Whether it is a whole number."""
        return _WHOLE.fullmatch(self.value) is not None


@dataclass(frozen=True)
class CommandLineProposal:
    """A command line with its numbers replaced by knobs.

    Attributes:
        argv: Templates of its words; `{name}` is the value of a knob.
        environment: Templates of the variables before it, by name.
        knobs: The knobs in these templates.
        files: The files that each run needs a copy of, by their names in the command.
        program: The known options and files of the program.
        notes: What was not understood or left out, a sentence each.
        name: The name of the program, or of the script that it runs.
    """

    argv: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]
    knobs: tuple[Knob, ...]
    files: tuple[tuple[str, Path], ...]
    program: KnownProgram
    notes: tuple[str, ...] = ()
    name: str = ""


def propose_knobs(words: Sequence[str], environment: Mapping[str, str]) -> CommandLineProposal:
    """Propose knobs for a command line: `OMP_NUM_THREADS=2 mpirun -np 4 prog -n 100` has threads, ranks and a number.

    Variables, prefixes such as `time`, and an MPI start command may precede the program. `environment` has the
    variables under which the command would run. With `{threads=1..8}` in the command, only such knobs are tuned.

    Raises:
        StudyFileError: The command needs a shell, or an MPI start command starts no program.
    """
    note = expanded_note(words)
    words, given = _take_values(words, environment)
    proposal = _propose(words, environment, {name for name, _ in given.values()})
    if note:
        proposal = replace(proposal, notes=(*proposal.notes, note))
    return _with_values(proposal, given) if given else proposal


def _take_values(
    words: Sequence[str], environment: Mapping[str, str]
) -> tuple[list[str], dict[str, tuple[str, list[int | str]]]]:
    """Replace each `{name=values}` by a number that occurs nowhere else; return names and values by that number."""
    given: dict[str, tuple[str, list[int | str]]] = {}
    known = " ".join([*words, *environment.values()])
    unused = (mark for mark in map(str, count(987_654_000)) if mark not in known)

    def number(found: "re.Match[str]") -> str:
        name, values = parse_values(found[1])
        if name in _TAKEN:
            msg = f"{found[0]}: {name} is a fact of the machine or a word of rules: choose another name"
            raise StudyFileError(msg)
        if name in {other for other, _ in given.values()}:
            msg = f"{found[0]}: {name} has values already: choose another name"
            raise StudyFileError(msg)
        mark = next(unused)
        given[mark] = (name, values)
        return mark

    return [_VALUES.sub(number, word) for word in words], given


def _with_values(
    proposal: CommandLineProposal, given: Mapping[str, tuple[str, list[int | str]]]
) -> CommandLineProposal:
    """Return the proposal with the knobs that the command names; counts that it fixes stay as they are."""
    knobs, names = [], {}
    marks = re.compile("|".join(given))
    for proposed in proposal.knobs:
        # An option before a number may have a mark in it, and its knob is named after it.
        knob = replace(proposed, name=marks.sub("", proposed.name), where=marks.sub("", proposed.where))
        name, values = given.get(knob.value, (knob.name, []))
        names[proposed.name] = name
        if values:
            knobs.append(replace(knob, name=name, value=str(values[0]), kind=knob.kind or "knob", values=tuple(values)))
        elif knob.kind in {"ranks", "processes", "threads"} and knob.is_whole:
            knobs.append(replace(knob, values=(int(knob.value),)))
        else:
            knobs.append(replace(knob, kind=""))
    found = {knob.name for knob in knobs if knob.values}
    knobs += [
        Knob(name, str(values[0]), "the command", "threads" if name == "threads" else "knob", tuple(values))
        for name, values in given.values()
        if name not in found
    ]

    def named(template: str) -> str:
        for before, name in names.items():
            template = template.replace(f"{{{before}}}", f"{{{name}}}")
        for mark, (name, _) in given.items():
            template = template.replace(mark, f"{{{name}}}")
        return template

    return replace(
        proposal,
        argv=tuple(map(named, proposal.argv)),
        environment=tuple((name, named(value)) for name, value in proposal.environment),
        knobs=tuple(knobs),
        name=marks.sub("", proposal.name),
    )


def _propose(words: Sequence[str], environment: Mapping[str, str], names: Collection[str]) -> CommandLineProposal:
    parser = _CommandLineParser(names)
    written = read_shell_words(words)
    line = read_start_line(written.words, environment)
    for name, value in line.variables.items():
        parser.read_variable(name, value)
    parser.add_counts(line)
    left = line.program
    parser.argv += map(_escape, line.kept)
    known = recognise_program(left)
    left, printed = known.without_print_options([*left, *written.input_words(known.stdin)])
    program = known.with_file_names(left)
    if line.is_inside and left and is_file(left[0]):
        left[0] = str(Path(left[0]).absolute())  # `uv run train.py` finds it from no other folder
    parser.read_program(left, program)
    parser.add_fill_option(program)
    parser.files.update({name: path for name in program.reads if name not in parser.files and (path := _here(name))})
    return CommandLineProposal(
        argv=tuple(parser.argv),
        environment=tuple(parser.environment),
        knobs=tuple(parser.knobs),
        files=tuple(parser.files.items()),
        program=program,
        # A container may have files of its own.
        notes=(*written.notes, *line.notes, *printed, *(() if line.is_inside else _missing_files(left, program))),
        name=_program_name(left, known),
    )


def _missing_files(words: Sequence[str], known: KnownProgram) -> Iterator[str]:
    """Yield a sentence for each input file that is not here, so that no run will find it."""
    options = _INPUT_OPTIONS | ({known.stdin} if known.stdin else set())
    named = [value for option, value in pairwise(words) if option in options and Path(value).suffix]
    # Not every run of a program needs all of its files.
    needed = [] if any(map(is_file, known.reads)) else known.reads[:1]
    for name in dict.fromkeys([*named, *needed]):
        if not name.startswith("-") and not Path(name).exists():
            yield f"there is no {name} here, which the command reads: no run will find it"


def _program_name(words: Sequence[str], known: KnownProgram) -> str:
    """Return the name of a program; of python, or of another program on the search path, that of its script."""
    program = Path(words[0])
    is_python = program.name.startswith("python")
    if is_python and "-m" in words[:-1]:
        return words[words.index("-m") + 1].rpartition(".")[2]
    scripts = [word for word in words[1:] if Path(word).suffix in known.in_place]
    takes_script = is_python or program.is_absolute() or "/" not in words[0]
    return Path(scripts[0]).stem if scripts and takes_script else program.stem


class _CommandLineParser:
    """Splits a command line into templates, knobs and files, one part after the other; `names` are not for knobs."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = _TAKEN.union(names)
        self.argv: list[str] = []
        self.environment: list[tuple[str, str]] = []
        self.knobs: list[Knob] = []
        self.files: dict[str, Path] = {}

    def read_variable(self, name: str, value: str) -> None:
        if _THREAD_VARIABLES.fullmatch(name) and _WHOLE.fullmatch(value) and int(value) > 0:
            knob = next((knob for knob in self.knobs if knob.kind == "threads"), None)
            knob = knob or self._knob("threads", value, name, "threads")
            self.environment.append((name, f"{{{knob.name}}}" if knob.value == value else value))
        elif _number(value):
            self.environment.append((name, f"{{{self._knob(name.lower(), value, name).name}}}"))
        else:
            self.environment.append((name, _escape(value)))

    def add_counts(self, line: StartLine) -> None:
        """Add the ranks and cores that the words before the program give."""
        if line.starter:
            where = f"{line.starter} {line.ranks_option}".rstrip()
            self._knob("np", "" if line.ranks is None else str(line.ranks), where, "ranks")
        threads = line.threads if line.starter else line.cores
        if threads is not None and (threads > 1 or not line.starter) and not self._has("threads"):
            self._knob("threads", str(threads), line.threads_from, "threads")

    def read_program(self, words: Sequence[str], known: KnownProgram) -> None:
        for index, word in enumerate(words):
            option, equals, value = word.partition("=")
            if index == 0:
                self.argv.append(_escape(str(Path(word).absolute()) if is_file(word) and "/" in word else word))
            elif equals and option.startswith("-") and _number(value):
                self.argv.append(f"{_escape(option)}={{{self._of_option(option, value, known)}}}")
            elif _number(word):
                self.argv.append(f"{{{self._of_option(known.option_before(words[1:index]), word, known)}}}")
            elif joined := known.joined_option(word):
                self.argv.append(f"{joined[0]}{{{self._of_option(*joined, known)}}}")
            elif equals and option.startswith("-"):
                self.argv.append(f"{_escape(option)}={self._file(value, known)}")
            else:
                self.argv.append(self._file(word, known))

    def add_fill_option(self, known: KnownProgram) -> None:
        """Add the option for threads if the command gives only processes, or the reverse.

        A program that fills the cores by itself would derive the missing number from all cores of the machine.
        """
        is_said = self._has("ranks") or any(knob.where in known.totals for knob in self.knobs)
        if not known.fills or is_said or self._has("threads") == self._has("processes"):
            return
        kind, options = ("processes", known.processes) if self._has("threads") else ("threads", known.threads)
        self.argv += [options[0], f"{{{self._knob(options[0].lstrip('-'), '', options[0], kind).name}}}"]

    def _file(self, word: str, known: KnownProgram) -> str:
        """Return a word; note a file that it names for copying into the folders of runs, or give its full path.

        A folder written as a path gets its full path, since the program may read or write it.
        """
        if ("/" in word or word in {".", ".."}) and not Path(word).is_absolute() and _is_folder(word):
            return _escape(str(Path(word).resolve()))
        if word.startswith("-") or Path(word).is_absolute() or not is_file(word):
            return _escape(word)
        path = Path(word).absolute()
        is_program = path.suffix in known.in_place or os.access(path, os.X_OK)
        if is_program or name_error(word) is not None or path.stat().st_size > _MOST_COPIED_BYTES:
            return _escape(str(path))
        self.files[word] = path
        return _escape(word)

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
        while name in known or name in self._names:
            name, number = f"{_identifier(wanted)}_{number}", number + 1
        knob = Knob(name, value, where, kind)
        self.knobs.append(knob)
        return knob


def _number(text: str) -> bool:
    is_decimal = _DECIMAL.fullmatch(text) and str(float(text)) == text
    return bool(_WHOLE.fullmatch(text) or is_decimal or _SCIENTIFIC.fullmatch(text))


def _identifier(text: str) -> str:
    name = re.sub(r"[^A-Za-z0-9]+", "_", text).strip("_").lower() or "number"
    return name if name[0].isalpha() and name.isascii() else f"n_{name}"


def _escape(word: str) -> str:
    return word.replace("{", "{{").replace("}", "}}")


def _here(name: str) -> Path | None:
    return Path(name).absolute() if is_file(name) else None


def _is_folder(word: str) -> bool:
    try:
        return Path(word).is_dir()
    except (OSError, ValueError):
        return False
