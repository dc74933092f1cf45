"""Programs whose command lines are known, from the table that ships with the studies."""

import importlib.resources
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

_TABLE = "init/programs.toml"


class KnownProgram(BaseModel):
    """What is known of a program: the options that count its threads and processes, and how its output is read.

    `commands` are the first words of its command line, without folders. `fills` says that it fills the cores by itself
    when only one of `threads` and `processes` is given; `totals` count the threads of all processes together.
    `in_place` are the ends of names of files that are programs themselves, `reads` are files that it reads though no
    word names them, `names` are options that give files other names, and `study` is the shipped study of it.
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
    names: dict[str, list[str]] = Field(default_factory=dict)
    study: str | None = None
    metrics: list[dict[str, Any]] = Field(default_factory=list)
    answer: dict[str, Any] | None = None
    progress: str | dict[str, str] | None = None
    outputs: list[str] = Field(default_factory=list)
    success: list[str] = Field(default_factory=list)
    failure: list[str] = Field(default_factory=list)

    def kind_of(self, option: str) -> str | None:
        """Return what the number of an option is: `threads`, `processes` or `knob`; None if that is not known."""
        kinds = (("threads", [*self.threads, *self.totals]), ("processes", self.processes), ("knob", self.knobs))
        return next((kind for kind, options in kinds if option in options), None)

    def option_before(self, words: Sequence[str]) -> str:
        """Return the option whose value follows these words: a known one of several words, or the last word."""
        several = [option for option in (*self.threads, *self.processes, *self.knobs) if " " in option]
        text = " ".join(words)
        known = next((option for option in several if text.endswith(f" {option}")), None)
        return known or (words[-1] if words and words[-1].startswith(("-", "+")) else "")

    def joined_option(self, word: str) -> tuple[str, str] | None:
        """Return an option of one letter and the number that is written behind it, as in -j8 or +p4; None otherwise."""
        for option in (*self.threads, *self.processes):
            value = word.removeprefix(option)
            if len(option) == 2 and word.startswith(option) and value.isdecimal() and value.isascii():
                return option, value
        return None

    def with_file_names(self, words: Sequence[str]) -> "KnownProgram":
        """Return it with its files called as the options of a command line say: those of one file win over others."""
        called: dict[str, str] = {}
        for option, files in sorted(self.names.items(), key=lambda item: -len(item[1])):
            for value in [value for word, value in pairwise(words) if word == option][:1]:
                called |= {file: value.removesuffix(Path(file).suffix) + Path(file).suffix for file in files}
        return self.model_validate(_rename_files(self.model_dump(), called))


def _rename_files(known: dict[str, Any], called: Mapping[str, str]) -> dict[str, Any]:
    """Return what is known of a program whose files are called otherwise."""

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
    """Return the programs of the table; the first stands for those that nobody knows."""
    text = (importlib.resources.files("studies") / _TABLE).read_text(encoding="utf-8")
    return tuple(KnownProgram.model_validate(entry) for entry in tomllib.loads(text)["programs"])


def known_program(words: Sequence[str]) -> KnownProgram:
    """Return what is known of the program that a command line starts."""
    names = [Path(word).name for word in words[:1]] + list(words[1:2])
    starts = {" ".join(names[:count]) for count in (1, 2)}
    unknown, *others = known_programs()
    return next((program for program in others if starts & set(program.commands)), unknown)
