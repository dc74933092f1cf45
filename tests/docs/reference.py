"""The reference pages, as the code says: `python -m tests.docs.reference` writes them into docs/reference/.

It belongs to the tests, which say when a page is not what the code generates.
"""

import enum
import importlib
import inspect
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from autotune.cli.app import app
from objectives.command_options import CommandOptions
from objectives.external import ExternalOptions
from objectives.mpi.options import MpiOptions
from objectives.qe.options import QeOptions
from objectives.replay.options import ReplayOptions
from objectives.training.ddp import DdpOptions
from objectives.training.dna import DnaOptions
from objectives.training.script import TrainingOptions
from objectives.ucx.options import UcxOptions
from tests.docs.page import ROOT

FOLDER = ROOT / "docs" / "reference"
REGENERATE = "python -m tests.docs.reference"
OBJECTIVES: dict[str, type[BaseModel]] = {
    "command": CommandOptions,
    "qe": QeOptions,
    "ucx": UcxOptions,
    "mpi": MpiOptions,
    "training": TrainingOptions,
    "dna": DnaOptions,
    "ddp": DdpOptions,
    "replay": ReplayOptions,
    "external": ExternalOptions,
}
_GENERATED = f"<!-- generated from the code by `{REGENERATE}`: do not edit -->\n"

API = {
    "autotune.studyfile": ("load", "find", "parse"),
    "autotune.performance.predict": ("question", "find_target", "with_known_installation", "predict"),
    "autotune.performance.measurements.dataset": ("measurements",),
    "autotune.results.frames": ("read_trials", "read_runs"),
    "objectives.kind": ("ObjectiveKind", "Program"),
    "objectives.shapes.costs": ("Costs",),
    "objectives.base": ("Plan", "Metric", "Context", "Output", "Measurement", "Answer"),
    "launchers.local": ("local_launcher",),
    "launchers.mpi": ("MpiStartCommand", "MpiFlavour", "RankStart"),
    "autotune.client": ("Client", "LeasedRun", "ServiceError"),
    "autotune.asktell": ("AskTell", "LeasedRun", "RunReport", "Reply"),
    "autotune.search.suggest": ("suggest", "ask"),
    "autotune.search.kernel_tuner": ("AutotuneStrategy",),
    "spaces": ("Space", "space_from_tables", "parameters_from_tables", "constraints_from_tables"),
}
"""The public Python interface; anything else may change without notice."""
_METHODS = {
    "Space": ("size", "default", "sample", "contains", "violations", "nearest", "neighbours", "encode", "to_dict"),
    "Client": (
        *("catalogue", "studies", "start", "study", "follow", "pause", "resume", "stop", "delete", "trials"),
        *("verdict", "predict", "ask", "tell", "renew", "space", "hint", "hints", "close"),
    ),
    "AskTell": ("open", "ask", "tell", "renew", "close", "ended", "status"),
}
# Made by a method of theirs, never by their name.
_OPENED = ("AskTell",)


def pages() -> dict[str, str]:
    """Return the text of every reference page by its file name."""
    found = {"cli.md": _cli(), "python.md": _python()}
    return {name: f"{_GENERATED}\n{text.rstrip()}\n" for name, text in found.items()}


# An option or argument that this number of commands share is described once.
_SHARED_BY = 2


def _cli() -> str:
    commands = dict(commands_of(typer.main.get_command(app)))
    counts = Counter(row for command in commands.values() for row in _rows(command))
    shared = [row for row, count in counts.items() if count >= _SHARED_BY]
    about = "`autotune COMMAND --help` prints the same. [Exit codes](../how-to/resume.md#exit-codes) have a page."
    parts = ["# Commands\n", f"{about}\n"]
    parts += [_command(name, command, shared) for name, command in commands.items()]
    parts += ["## Options of several commands\n", _list(shared)]
    return "\n".join(parts)


def commands_of(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command by its words, those of a group after it."""
    for name, command in group.commands.items():
        yield " ".join((*words, name)), command
        if hasattr(command, "commands"):
            yield from commands_of(command, (*words, name))


# The name of an option or argument, what stands after it in a call, and its description.
_Row = tuple[str, str, str]


def _rows(command: Any) -> list[_Row]:
    """Return a row for each argument and option of a command."""
    rows = []
    for parameter in command.params:
        if parameter.name == "help":
            continue
        if parameter.param_type_name == "argument":
            rows.append((str(parameter.metavar), "", parameter.help or ""))
            continue
        name = ", ".join([*parameter.opts, *parameter.secondary_opts])
        value = "" if parameter.is_flag else f" {_value(parameter)}"
        said = (parameter.help or "") + (f" Also: `{parameter.envvar}`." if parameter.envvar else "")
        rows.append((name, value, f"{said}{_default_of(parameter)}"))
    return rows


def _default_of(parameter: Any) -> str:
    default = parameter.default
    is_shown = isinstance(default, str | int | float | Path) and default is not False
    return " Required." if parameter.required else f" Default: `{default}`." if is_shown else ""


def _list(rows: list[_Row]) -> str:
    return "".join(f"- `{name}{value}`: {' '.join(said.split())}\n" for name, value, said in rows)


def _command(name: str, command: Any, shared: list[_Row]) -> str:
    words = [f"autotune {name}"]
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            one = parameter.metavar if parameter.required else f"[{parameter.metavar}]"
            words.append(one if parameter.nargs == 1 else f"{one}...")
    rows = _rows(command)
    # The name is enough here: the list of shared options has the rest.
    also = ", ".join(f"`{row[0].split(',')[0]}`" for row in rows if row in shared and row[0].startswith("-"))
    parts = [f"## `{' '.join(words)}`\n", f"{' '.join((command.help or '').split())}\n"]
    own = _list([row for row in rows if row not in shared])
    parts += [own] if own else []
    parts += [f"Also {also}.\n"] if also else []
    return "\n".join(parts)


_KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return "|".join(str(one.value) for one in kind)
    return str(parameter.metavar or _KINDS[kind])


def nested(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a key that is a table of its own, or a list of tables."""
    todo = [field.annotation]
    while todo:
        one = todo.pop()
        if inspect.isclass(one) and issubclass(one, BaseModel):
            return one
        todo.extend(get_args(one))
    return None


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a table by the names that a file has for them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def _python() -> str:
    about = "No Python is needed to tune a program. You may call these; anything else may change without notice."
    parts = ["# Python\n", f"{about} `help(NAME)` describes the arguments, with units, and the errors.\n"]
    for name, members in API.items():
        module = importlib.import_module(name)
        parts.append(f"## `{name}`\n\n{_first_paragraph(module)}\n")
        parts += [_member(module, member) for member in members]
    return "\n".join(parts)


def _member(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    made = "" if name in _OPENED else _signature(found)
    text = f"### `{name}{made}`\n\n{_first_paragraph(found)}\n"
    methods = _METHODS.get(name, ())
    for method in methods:
        static = inspect.getattr_static(found, method)
        one = static.__func__ if isinstance(static, classmethod) else static
        shown = method if not inspect.isfunction(one) else f"{method}{_signature(one)}"
        text += f"\n- `{shown}`: {_first_paragraph(one)}"
    return f"{text}\n" if methods else text


def _signature(found: Any) -> str:
    names = []
    for parameter in inspect.signature(found).parameters.values():
        if parameter.name in {"self", "cls"} or parameter.name.startswith("_"):
            continue
        shown = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "") + parameter.name
        names.append(shown if parameter.default is parameter.empty else f"{shown}={_value_shown(parameter.default)}")
    return f"({', '.join(names)})"


def _value_shown(value: Any) -> str:
    """Return a default as it is written; a function has no short form that is always the same."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    shown = repr(value)
    return "..." if callable(value) or shown.startswith("<") else shown


def _first_paragraph(found: Any) -> str:
    return " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
