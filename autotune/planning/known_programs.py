"""Programs with known command lines, from the table that ships with the studies."""

import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from autotune.planning.shell_words import left_out

_TABLE = "init/programs.toml"


class KnownProgram(BaseModel):
    """A known program: its options for threads and processes, its files, and how its output is read.

    Attributes:
        commands: The first one or two words of its command line, without folders and without `python3 -m`.
        threads: Options for the number of threads of a process.
        processes: Options for the number of processes.
        totals: Options for the number of threads of all processes together.
        fills: Whether it fills the cores by itself if only one of threads and processes is given.
        knobs: Further options that may be tuned.
        in_place: Suffixes of files that are programs themselves and are not copied.
        reads: Files that it reads without an option.
        stdin: The option that names the file which it would else read from standard input.
        prints_to: Options whose value says where it prints instead of standard output.
        names: By option, the files whose names the option changes.
        study: The shipped study of the program.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    commands: list[str]
    threads: list[str] = Field(default_factory=list)
    processes: list[str] = Field(default_factory=list)
    totals: list[str] = Field(default_factory=list)
    fills: bool = False
    knobs: list[str] = Field(default_factory=list)
    in_place: list[str] = Field(default_factory=list)
    reads: list[str] = Field(default_factory=list)
    stdin: str | None = None
    prints_to: list[str] = Field(default_factory=list)
    names: dict[str, list[str]] = Field(default_factory=dict)
    study: str | None = None
    metrics: list[dict[str, Any]] = Field(default_factory=list)
    answer: dict[str, Any] | None = None
    progress: str | dict[str, str] | None = None
    outputs: list[str] = Field(default_factory=list)
    success: list[str] = Field(default_factory=list)
    failure: list[str] = Field(default_factory=list)

    def kind_of(self, option: str) -> str | None:
        """Return what the number of an option is: `threads`, `processes` or `knob`; None for an unknown option."""
        kinds = (("threads", [*self.threads, *self.totals]), ("processes", self.processes), ("knob", self.knobs))
        return next((kind for kind, options in kinds if option in options), None)

    def option_before(self, words: Sequence[str]) -> str:
        """Return the option whose value follows these words: a known option of several words, or the last word."""
        several = [option for option in (*self.threads, *self.processes, *self.knobs) if " " in option]
        text = " ".join(words)
        known = next((option for option in several if text.endswith(f" {option}")), None)
        # `--token=abc` has its value already.
        return known or (words[-1] if words and words[-1].startswith(("-", "+")) and "=" not in words[-1] else "")

    def joined_option(self, word: str) -> tuple[str, str] | None:
        """Return a one-letter option and the number joined to it, as in -j8 or +p4; None for other words."""
        for option in (*self.threads, *self.processes):
            value = word.removeprefix(option)
            if len(option) == 2 and word.startswith(option) and value.isdecimal() and value.isascii():
                return option, value
        return None

    def without_print_options(self, words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
        """Return a command line that prints to standard output, and a note for each option that this left out."""
        kept: list[str] = []
        notes = []
        left = list(words)
        while left:
            word = left.pop(0)
            if word in self.prints_to and left:
                notes.append(left_out(f"{word} {left.pop(0)}"))
            else:
                kept.append(word)
        return kept, tuple(notes)

    def with_file_names(self, words: Sequence[str]) -> "KnownProgram":
        """Return a copy with the file names that a command line sets.

        An option that names a single file wins over one that names several.
        """
        called: dict[str, str] = {}
        for option, files in sorted(self.names.items(), key=lambda item: -len(item[1])):
            for value in [value for word, value in pairwise(words) if word == option][:1]:
                called |= {file: value.removesuffix(Path(file).suffix) + Path(file).suffix for file in files}
        return self.model_validate(_rename_files(self.model_dump(), called))


def _rename_files(known: dict[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """Return the fields of a known program with some of its files renamed."""

    def read(section: Any) -> Any:  # noqa: ANN401  a table, a pattern or nothing
        if not isinstance(section, dict) or "file" not in section:
            return section
        return {**section, "file": called.get(section["file"], section["file"])}

    return known | {
        "reads": [called.get(name, name) for name in known["reads"]],
        "outputs": [called.get(name, name) for name in known["outputs"]],
        "metrics": [read(metric) for metric in known["metrics"]],
        "answer": read(known["answer"]),
        "progress": read(known["progress"]),
    }


@cache
def known_programs() -> tuple[KnownProgram, ...]:
    """Return the programs of the table; the first one describes all unknown programs."""
    text = (importlib.resources.files("studies") / _TABLE).read_text(encoding="utf-8")
    return tuple(KnownProgram.model_validate(entry) for entry in tomllib.loads(text)["programs"])


def recognise_program(words: Sequence[str]) -> KnownProgram:
    """Return the program that a command line starts; the first of the table if it is unknown."""
    if words[1:2] == ["-m"]:
        words = words[2:]  # a module of Python
    names = [Path(word).name for word in words[:1]] + list(words[1:2])
    starts = {" ".join(names[:count]) for count in (1, 2)}
    unknown, *others = known_programs()
    return next((program for program in others if starts & set(program.commands)), unknown)
