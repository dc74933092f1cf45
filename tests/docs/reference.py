"""The reference pages, as the code says: `python -m tests.docs.reference` writes them into docs/reference/.

It belongs to the tests, which say when a page is not what the code generates.
"""

import enum
import importlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from autotune import errors, studyfile
from autotune.cli.app import app
from autotune.errors import AutotuneError, ExitCode
from autotune.studyfile.one_of import OneOf
from autotune.studyfile.references import ReferencesFile
from objectives.command_options import CommandOptions
from objectives.external import ExternalOptions
from objectives.mpi.options import MpiOptions
from objectives.qe.options import QeOptions
from objectives.replay.options import ReplayOptions
from objectives.training.ddp import DdpOptions
from objectives.training.dna import DnaOptions
from objectives.training.script import TrainingOptions
from objectives.ucx.options import UcxOptions
from spaces.expressions.functions import ARITIES, FUNCTIONS
from spaces.tables import _COMMON, _OWN_KEYS
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

# What no error class says.
_OTHER_CODES = {
    ExitCode.OK: "Done.",
    ExitCode.CHANGED: "The winner that `watch` checked no longer wins, or a run time has changed.",
    ExitCode.INTERRUPTED: "Interrupted (Ctrl-C, `kill`, `--take-over`): every finished run is stored.",
}

API = {
    "autotune.studyfile": ("load", "find", "parse"),
    "autotune.performance.predict": ("question", "find_target", "with_known_installation", "predict"),
    "autotune.performance.measurements.dataset": ("measurements",),
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
    found = {"cli.md": _cli(), "study-file-keys.md": _keys(), "expressions.md": _expressions(), "python.md": _python()}
    return {name: f"{_GENERATED}\n{text.rstrip()}\n" for name, text in found.items()}


def _cell(text: object) -> str:
    return " ".join(str(text).split()).replace("|", r"\|")


def _table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return (
        "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines).replace("|  |", "| |").replace("|  |", "| |")
    )


# An option that this number of commands share is described once.
_SHARED_BY = 4


def _cli() -> str:
    group = typer.main.get_command(app)
    commands = dict(commands_of(group))
    counts = Counter(row for command in commands.values() for row in _options(command))
    shared = [row for row, count in counts.items() if count >= _SHARED_BY]
    parts = ["# Commands\n", f"{group.help}\n"]
    parts += [_command(name, command, shared) for name, command in commands.items()]
    parts += ["## Options of several commands\n", _table(("", "", "default"), shared)]
    parts += ["## Exit codes\n", _exit_codes()]
    return "\n".join(parts)


def commands_of(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Yield every command by its words, those of a group after it."""
    for name, command in group.commands.items():
        yield " ".join((*words, name)), command
        if hasattr(command, "commands"):
            yield from commands_of(command, (*words, name))


def _options(command: Any) -> list[tuple[str, str, str]]:
    """Return a row for each option of a command."""
    rows = []
    for parameter in command.params:
        if parameter.name == "help" or parameter.param_type_name == "argument":
            continue
        value = "" if parameter.is_flag else f" {_value(parameter)}"
        label = f"`{', '.join([*parameter.opts, *parameter.secondary_opts])}{value}`"
        said = (parameter.help or "") + (f" Also: `{parameter.envvar}`." if parameter.envvar else "")
        rows.append((label, said, _default_of(parameter)))
    return rows


def _default_of(parameter: Any) -> str:
    default = f"`{parameter.default}`" if isinstance(parameter.default, str | int | float | Path) else ""
    return "required" if parameter.required else "" if parameter.default is False else default


def _command(name: str, command: Any, shared: list[tuple[str, str, str]]) -> str:
    about = f"## `autotune {name}`\n\n{' '.join((command.help or '').split())}\n\n"
    rows, arguments = [], []
    for parameter in command.params:
        if parameter.param_type_name != "argument":
            continue
        label = parameter.metavar
        one = label if parameter.required else f"[{label}]"
        arguments.append(one if parameter.nargs == 1 else f"{one}...")
        rows.append((f"`{label}`", parameter.help or "", _default_of(parameter)))
    options = _options(command)
    rows += [row for row in options if row not in shared]
    if not options and hasattr(command, "commands"):
        return about
    usage = f"```text\n{' '.join(['autotune', name, *arguments, '[OPTIONS]'])}\n```\n\n"
    table = _table(("", "", "default"), rows) if rows else ""
    # The name is enough: what stands after it is in the table of shared options.
    also = ", ".join(f"`{row[0].strip('`').split()[0].rstrip(',')}`" for row in options if row in shared)
    return about + usage + table + (f"\nAnd {also}.\n" if also else "")


_KINDS = {int: "INTEGER", float: "NUMBER", str: "TEXT", Path: "PATH"}


def _value(parameter: Any) -> str:
    kind = parameter.type_descriptor.annotation
    if inspect.isclass(kind) and issubclass(kind, enum.Enum):
        return "|".join(str(one.value) for one in kind)
    return str(parameter.metavar or _KINDS[kind])


def _exit_codes() -> str:
    said: dict[ExitCode, list[str]] = {code: [text] for code, text in _OTHER_CODES.items()}
    classes = [one for _, one in inspect.getmembers(errors, inspect.isclass) if issubclass(one, AutotuneError)]
    for one in sorted(classes, key=lambda one: (one is not AutotuneError, one.__name__)):
        said.setdefault(one.exit_code, []).append(inspect.getdoc(one) or "")
    rows = [(f"{code.value}", f"`{code.name}`", " ".join(" ".join(said[code]).split())) for code in ExitCode]
    rows.insert(
        1, ("1", "", "The answer is no: `autotune check --configuration` of a configuration that is not valid.")
    )
    return _table(("code", "name", "meaning"), rows)


# What a file without that key gets when it is read.
_WHEN_LOADED = {("top level", "name"): "the file's name"}


def _type(annotation: Any) -> str:
    """Return a type in the words of TOML."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        (names, *_) = [one.names() for one in inner[1:] if isinstance(one, OneOf)] or [None]
        return _type(inner[0]) if names is None else " or ".join(f"`{json.dumps(name)}`" for name in names)
    if origin is Literal:
        return " or ".join(f"`{json.dumps(one)}`" for one in inner)
    if origin is list:
        return "list of tables" if _is_model(inner[0]) else f"list of {_many(_type(inner[0]))}"
    if origin is dict or _is_model(annotation):
        return "table"
    if inner:
        return " or ".join(_type(one) for one in inner if one is not type(None))
    return _TYPES[annotation]


def _many(one: str) -> str:
    if one.startswith("list of "):
        return one.replace("list", "lists", 1)
    return " or ".join(f"{word}s" for word in one.split(" or "))


_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", Any: "value", object: "value"}


def _is_model(annotation: Any) -> bool:
    return inspect.isclass(annotation) and issubclass(annotation, BaseModel)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    return "" if value is None or isinstance(value, BaseModel) or value in ({}, [], ()) else f"`{json.dumps(value)}`"


def _limits(field: FieldInfo) -> str:
    signs = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than", "min_length": "length at least"}
    return ", ".join(
        f"{words} {getattr(one, name)}" for one in field.metadata for name, words in signs.items() if hasattr(one, name)
    )


def nested(field: FieldInfo) -> type[BaseModel] | None:
    """Return the model of a key that is a table of its own, or a list of tables."""
    todo = [field.annotation]
    while todo:
        one = todo.pop()
        if _is_model(one):
            return one
        todo.extend(get_args(one))
    return None


def keys_of(model: type[BaseModel]) -> dict[str, FieldInfo]:
    """Return the fields of a table by the names that a file has for them."""
    return {field.alias or name: field for name, field in model.model_fields.items()}


def sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield every table of a study file with its model."""
    yield "top level", studyfile.StudyFile
    for objective, options in OBJECTIVES.items():
        yield f"[options] of {objective}", options
        for key, field in options.model_fields.items():
            inner = nested(field)
            if inner is not None:
                yield f"[options] of {objective}: {key}", inner
    for key, field in studyfile.StudyFile.model_fields.items():
        inner = nested(field)
        if inner is not None:
            yield f"[{key}]", inner
    yield "reference file", ReferencesFile


def _keys() -> str:
    about = "Every key, with its type, its limits and its default"
    meaning = "[study-files.md](../study-files.md), or the page of a program, says what each means."
    parts = [f"# Keys of a study file\n\n{about}. {meaning}\n"]
    for title, model in sections():
        rows = [
            (f"`{key}`", _type(field.annotation), _limits(field), _WHEN_LOADED.get((title, key)) or _default(field))
            for key, field in keys_of(model).items()
        ]
        parts.append(f"## {title}\n\n{_table(('key', 'type', 'limits', 'default'), rows)}")
    rows = [(f"`{kind}`", ", ".join(f"`{key}`" for key in (*_COMMON, *own))) for kind, own in _OWN_KEYS.items()]
    parts.append(f"## [space.parameters.NAME]\n\n{_table(('type', 'keys'), rows)}")
    return "\n".join(parts)


def _expressions() -> str:
    rows = [(f"`{name}`", _arity(name), told.partition(": ")[2]) for name, told in FUNCTIONS.items()]
    usage = [f"`{told.partition(': ')[0]}`" for told in FUNCTIONS.values()]
    rows = [(shown, arity, told) for shown, (_, arity, told) in zip(usage, rows, strict=True)]
    return (
        "# Functions of expressions\n\nWhat rules, `when`, and values in quotes may call, beside arithmetic "
        "(`+ - * / // % **`), comparisons, `and or not`, `in [1, 2]` and `a if b else c`. "
        "[study-files.md](../study-files.md) says where expressions may stand. With a parameter without a value all "
        "but `is_set` is unknown, and so are `and`, `or`, `not` and `if` where the rest does not decide; a rule "
        "forbids where it is false, not where it is unknown.\n\n" + _table(("function", "arguments", "meaning"), rows)
    )


def _arity(name: str) -> str:
    low, high = ARITIES[name]
    return f"{low}" if low == high else f"{low} to {high}"


def _python() -> str:
    parts = [
        "# Python\n",
        "No Python is needed to tune a program. These may be called; whatever is not here may change without a word.\n",
    ]
    for name, members in API.items():
        module = importlib.import_module(name)
        parts.append(f"## `{name}`\n\n{' '.join((inspect.getdoc(module) or '').split(chr(10) * 2)[0].split())}\n")
        parts += [_member(module, member) for member in members]
    return "\n".join(parts)


def _member(module: ModuleType, name: str) -> str:
    found = getattr(module, name)
    made = "" if name in _OPENED else _signature(found)
    text = f"### `{name}{made}`\n\n{_prose(found)}\n"
    for method in _METHODS.get(name, ()):
        static = inspect.getattr_static(found, method)
        one = static.__func__ if isinstance(static, classmethod) else static
        shown = method if not inspect.isfunction(one) else f"{method}{_signature(one)}"
        text += f"\n- `{shown}`: {_prose(one).partition(chr(10) * 2)[0]}"
    return text + "\n"


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


def _prose(found: Any) -> str:
    return re.sub(r"^ {4}(?=\w+: )", "- ", inspect.getdoc(found) or "", flags=re.MULTILINE).replace(
        "Raises:\n", "Raises:\n\n"
    )


def main() -> None:
    """Write the pages."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
