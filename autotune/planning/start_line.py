"""Read what stands before the program on a command line: variables, prefixes such as `time`, an MPI start command."""

import importlib.resources
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from autotune.errors import StudyFileError
from autotune.planning.shell_words import is_file
from launchers.environment import inherited_variables
from launchers.mpi import start_commands
from launchers.secret import mask_secrets

_TABLE = "init/start_commands.toml"
_VARIABLE = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL | re.ASCII)
_COUNT = re.compile(r"[1-9]\d{0,8}", re.ASCII)
_COUNTS = ("ranks", "nodes", "per_node", "per_set", "threads")
_NEXT_PROGRAM = ":"
# The number of ranks that Slurm gives a start command without one.
_TASKS = "SLURM_NTASKS"
_MAPPING = ("OMPI_MCA_rmaps_base_mapping_policy", "PRTE_MCA_rmaps_default_mapping_policy")


class Starter(BaseModel):
    """A command that stands before a program, by its entry in the table, whose head explains the fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    names: list[str]
    mpi: bool = False
    alone: int | None = None
    ranks: list[str] = Field(default_factory=list)
    nodes: list[str] = Field(default_factory=list)
    per_node: list[str] = Field(default_factory=list)
    per_set: list[str] = Field(default_factory=list)
    threads: list[str] = Field(default_factory=list)
    map_by: list[str] = Field(default_factory=list)
    assignments: list[str] = Field(default_factory=list)
    lists: list[str] = Field(default_factory=list)
    pairs: list[str] = Field(default_factory=list)
    prefixed: dict[str, str] = Field(default_factory=dict)
    variables: dict[str, list[str]] = Field(default_factory=dict)
    only: dict[str, list[str]] = Field(default_factory=dict)
    cpu_lists: list[str] = Field(default_factory=list)
    left_out: list[str] = Field(default_factory=list)
    left_flags: list[str] = Field(default_factory=list)
    quiet: list[str] = Field(default_factory=list)
    quiet_flags: list[str] = Field(default_factory=list)
    kept: list[str] = Field(default_factory=list)
    kept_flags: list[str] = Field(default_factory=list)
    stays: bool = False
    operand: Literal["cpus", "left_out", "kept"] | None = None
    wrong: str | None = None

    def values_after(self, option: str) -> int | None:
        """Return how many values an option has, without its dashes; None for an unknown option."""
        if option in self.pairs or option in self.prefixed:
            return 2
        one = (
            *(self.ranks, self.nodes, self.per_node, self.per_set, self.threads, self.map_by, self.assignments),
            *(self.lists, self.variables, self.cpu_lists, self.left_out, self.quiet, self.kept),
        )
        if any(option in options for options in one):
            return 1
        return 0 if option in {*self.left_flags, *self.quiet_flags, *self.kept_flags} else None


@dataclass
class StartLine:
    """What stands before a program.

    Attributes:
        program: The words from the program on.
        variables: The variables that are set.
        kept: The words that stay before the program.
        starter: The MPI start command as it was called; empty without one.
        ranks: The number of ranks; None without a start command, or if it is not given.
        ranks_option: The option that gives it, with its dashes.
        threads: The cores of each rank; None if they are not given.
        cores: The cores that a prefix keeps the program to; None if none does.
        threads_from: The command and the option that give these.
        is_inside: Whether a container or an environment is among the words that stay.
        notes: One sentence for each command that was not understood, or of which something was left out.
    """

    program: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    starter: str = ""
    ranks: int | None = None
    ranks_option: str = ""
    threads: int | None = None
    cores: int | None = None
    threads_from: str = ""
    is_inside: bool = False
    notes: list[str] = field(default_factory=list)


def read_start_line(words: Sequence[str], environment: Mapping[str, str]) -> StartLine:
    """Read the words before the program, under the variables in `environment`.

    Raises:
        StudyFileError: An MPI start command starts no program.
    """
    line = StartLine(list(words))
    while len(line.program) > 1 or _is_mpi(line.program):
        first = line.program[0]
        if _VARIABLE.fullmatch(first):
            name, _, line.variables[name] = line.program.pop(0).partition("=")
            continue
        count, starter = next(((k, found) for k in (1, 2) if (found := _starter(line.program[:k]))), (0, None))
        if starter is None or (starter.mpi and (line.starter or line.is_inside)):
            break
        reader = _OptionReader(starter, line.program, environment, " ".join(line.program[:count]), at=count)
        if (wrong := starter.wrong or reader.read()) is not None:
            if starter.mpi and reader.at >= len(line.program):
                msg = f"{' '.join(line.program)}: no program follows; give it after the options of {reader.name}"
                raise StudyFileError(msg)
            line.notes.append(f"{first} stays in the command as it is: {wrong}")
            break
        reader.add_to(line)
    return line


@dataclass
class _OptionReader:
    """Reads the options of one command before a program."""

    starter: Starter
    words: Sequence[str]
    environment: Mapping[str, str]
    name: str
    at: int
    variables: dict[str, str] = field(default_factory=dict)
    kept: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    cores: int | None = None

    def read(self) -> str | None:
        """Read all options up to the program; return what is not understood, if anything."""
        while self.at < len(self.words) and self.words[self.at].startswith("-"):
            if self.words[self.at] == "--":
                self.at += 1
                break
            if (wrong := self._option()) is not None:
                return wrong
        if self.starter.operand is not None:
            if self.at >= len(self.words):
                return "a word is missing before the program"
            self._operand(self.words[self.at])
            self.at += 1
        if self.at >= len(self.words):
            return "no program follows"
        if self.starter.mpi and _COUNT.fullmatch(self.words[self.at]):
            return f"what {' '.join(self.words[self.at - 1 : self.at + 1])} means is not known"
        if self.starter.mpi and _NEXT_PROGRAM in self.words[self.at :]:
            return "it starts several programs; set threads to the number of all their ranks"
        return None

    def add_to(self, line: StartLine) -> None:
        """Add to `line` what was read, and leave it the words from the next command on."""
        name = self.name
        line.program = list(self.words[self.at :])
        line.variables |= self.variables
        line.kept += [*name.split(), *self.kept] if self.kept or self.starter.stays else []
        line.is_inside |= self.starter.stays
        if self.left:
            line.notes.append(f"left out, since the study or its site decides it: {name} {' '.join(self.left)}")
        if self.starter.mpi:
            line.starter, line.ranks = name, self._ranks()
            line.ranks_option = next((self.options[key] for key in ("ranks", "per_node") if key in self.options), "")
            known = {command for one in start_commands() for command in one.commands}
            if not {Path(name).name.partition(".")[0], Path(name).name} & known:
                line.notes.append(f"autotune starts ranks with mpirun, mpiexec or srun, not with {name}")
        if "threads" in self.counts:
            line.threads = max(1, self.counts["threads"] // self.counts.get("per_set", 1))
            line.threads_from = f"{name} {self.options['threads']}"
        elif self.cores is not None and line.threads is None:
            line.cores, line.threads_from = self.cores, name

    def _ranks(self) -> int | None:
        counts = self.counts
        if "ranks" in counts:
            return counts["ranks"] * counts.get("per_set", 1)
        if "per_node" in counts or "nodes" in counts:
            return counts.get("nodes", 1) * counts.get("per_node", 1)
        tasks = self.environment.get(_TASKS, "")
        return int(tasks) if _COUNT.fullmatch(tasks) else self.starter.alone

    def _option(self) -> str | None:
        word = self.words[self.at]
        dashed, equals, value = word.partition("=")
        key = dashed.lstrip("-")
        number = self.starter.values_after(key)
        if number is None and word[1:2] not in {"", "-"} and self.starter.values_after(word[1]) == 1:
            # The value is joined to a one-letter option: -n8.
            dashed, key, value, equals, number = word[:2], word[1], word[2:].removeprefix("="), "=", 1
        if number is None:
            return f"its option {dashed} is not known"
        if key in self.starter.pairs and "=" in "".join(self.words[self.at + 1 : self.at + 2]):
            number = 1  # Hydra also takes -genv NAME=VALUE.
        values = [value] if equals else list(self.words[self.at + 1 : self.at + 1 + number])
        self.at += 1 if equals else 1 + number
        if number and len(values) < number:
            return f"a value of {dashed} is missing"
        return self._take(key, dashed, values, [word] if equals else [dashed, *values])

    def _take(self, key: str, dashed: str, values: Sequence[str], words: Sequence[str]) -> str | None:
        """Take an option, given as the `words`; return what is wrong with its value."""
        starter = self.starter
        kind = next((kind for kind in _COUNTS if key in getattr(starter, kind)), None)
        if kind is not None:
            return self._count(kind, dashed, values[0], words)
        if key in starter.map_by:
            self._map_by(dashed, values[0], words)
        elif key in starter.cpu_lists:
            self.left += words
            self.cores = _cores_in_list(values[0])
        elif key in {*starter.kept, *starter.kept_flags}:
            self.kept += words
        elif not self._set_variables(key, values) and key not in {*starter.quiet, *starter.quiet_flags}:
            self.left += words
        return None

    def _count(self, kind: str, dashed: str, value: str, words: Sequence[str]) -> str | None:
        if not _COUNT.fullmatch(value):
            return f"{' '.join(words)} is no number of ranks, nodes or cores"
        self.counts[kind], self.options[kind] = int(value), dashed
        # Only the number of ranks is kept, not how they spread over nodes.
        self.left += words if kind in {"nodes", "per_node"} else []
        return None

    def _set_variables(self, key: str, values: Sequence[str]) -> bool:
        """Set the variables that an option sets or that can replace it; return whether there are any."""
        starter = self.starter
        if key in starter.variables and values[0] in starter.only.get(key, values):
            self.variables |= dict.fromkeys(starter.variables[key], values[0])
        elif key in {*starter.pairs, *starter.prefixed} and len(values) > 1:
            self.variables[starter.prefixed.get(key, "") + values[0]] = values[1]
        elif key in {*starter.assignments, *starter.pairs}:
            self._assign(values[0])
        elif key in starter.lists:
            for assignment in values[0].split(","):
                self._assign(assignment)
        else:
            return False
        return True

    def _map_by(self, dashed: str, value: str, words: Sequence[str]) -> None:
        """Take the cores of each rank from Open MPI's mapping (`socket:PE=2`), and its policy if ranks may vary."""
        policy, *modifiers = value.split(":")
        cores = next((one[3:] for one in modifiers if one.lower().startswith("pe=")), "")
        if _COUNT.fullmatch(cores):
            self.counts["threads"], self.options["threads"] = int(cores), dashed
        others = [one for one in modifiers if not one.lower().startswith("pe=")]
        # ppr:2:socket fixes the number of ranks, pe-list the cores.
        if policy.lower() in {"ppr", "pe-list", "rankfile", "seq", "dist"} or others:
            self.left += words
        elif policy:
            self.variables |= dict.fromkeys(_MAPPING, policy)

    def _assign(self, assignment: str) -> None:
        """Take `NAME=VALUE`, or `NAME` for the value that the variable has here."""
        name, equals, value = assignment.partition("=")
        if equals:
            self.variables[name] = value
        elif name in self.environment and not inherited_variables({name: ""}):
            # A job sees such a variable only if its study file sets it. Secrets stay out of that file.
            self.variables |= mask_secrets({name: self.environment[name]})

    def _operand(self, word: str) -> None:
        if self.starter.operand == "cpus":
            is_list = any(one in {"-c", "--cpu-list"} for one in self.left)
            self.left = [*self.left, word]
            self.cores = _cores_in_list(word) if is_list else _cores_in_mask(word)
        elif self.starter.operand == "kept":
            self.kept.append(str(Path(word).absolute()) if is_file(word) else word)
        else:
            self.left.append(word)


def _cores_in_list(cores: str) -> int | None:
    """Return how many cores a list such as 0-3,8 has; None if it is no such list."""
    found: set[int] = set()
    for part in cores.split(","):
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?(?::(\d{1,6}))?", part, re.ASCII)
        if match is None:
            return None
        found |= set(range(int(match[1]), int(match[2] or match[1]) + 1, max(1, int(match[3] or 1))))
    return len(found) or None


def _cores_in_mask(mask: str) -> int | None:
    """Return how many cores a hexadecimal mask has; None if it is none."""
    try:
        return int(mask.replace(",", ""), 16).bit_count() or None
    except ValueError:
        return None


@cache
def _starters() -> dict[str, Starter]:
    text = (importlib.resources.files("studies") / _TABLE).read_text(encoding="utf-8")
    starters = [Starter.model_validate(entry) for entry in tomllib.loads(text)["commands"]]
    return {name: starter for starter in starters for name in starter.names}


def _is_mpi(words: Sequence[str]) -> bool:
    """Return whether these words are an MPI start command, without options."""
    return bool(words) and (starter := _starter(words)) is not None and starter.mpi


def _starter(words: Sequence[str]) -> Starter | None:
    """Return the entry of a command; one that another distribution adds has the options that it declares."""
    name = " ".join([Path(words[0]).name, *words[1:]])
    if name in _starters():
        return _starters()[name]
    options = [word.lstrip("-") for one in start_commands() if name in one.commands for word in one.rank_options]
    return Starter(names=[name], mpi=True, ranks=options) if options else None
