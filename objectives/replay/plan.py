"""Make a table ready to be replayed: read it, and find its space and its default configuration."""

import csv
import gzip
import hashlib
import io
import json
import math
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from launchers.software.digest import text_digest
from objectives.base import Plan, PlanError, RunJob
from objectives.replay.delimited import MOST_DIGITS, read_csv
from objectives.replay.domains import parameter_of, usable_names, value_of, with_default
from objectives.replay.kernel_tuner import read_cache
from objectives.replay.objective import ReplayObjective
from objectives.replay.options import ReplayOptions
from objectives.replay.t1 import Definition, read_t1
from objectives.replay.t4 import read_results
from objectives.replay.table import Key, RecordedTable
from spaces import Constraint, Listed, Space, SpaceError, Value
from spaces.parameters.problem import Problem

_REASON = "nothing else was measured"
_MEASURED = "measured"
_SHIPPED = ("ucx-tcp",)
_GZIP = b"\x1f\x8b"
_MOST_BYTES = 2**28  # unpacked
_SQLITE = b"SQLite format 3"
_DIGITS = 16


@dataclass(frozen=True)
class _Space:
    """The space of a replay, and remarks on it."""

    definition: Definition
    notes: tuple[str, ...] = ()


def plan(options: Mapping[str, Any], *, machine: Mapping[str, Any], run_job: RunJob, folder: Path) -> Plan:
    """Read the table and find its space.

    Raises:
        PlanError: The options or the files have errors; all are reported, each with its path.
    """
    del run_job, folder
    checked = ReplayOptions.read(options)
    if checked.study is not None:
        msg = f"{checked.table} holds no study: `study` belongs to a storage of autotune"
        raise PlanError(Problem(msg, "options.study"))
    try:
        text = _text(checked.table, "table")
        table, refused = read_table(text, checked).with_comparable_values()
        space = _read_space(table, checked) if checked.space else _derive_space(table, checked, machine)
        made = _make_plan(table, space, checked, text_digest(text))
        return replace(made, notes=(*made.notes, *refused))
    except SpaceError as error:
        raise PlanError(error.problems) from None
    except ValueError as error:
        raise PlanError(str(error)) from None
    except (AttributeError, TypeError, IndexError, RuntimeError, OverflowError, csv.Error) as error:
        # Readers of third-party files do not check every part, so a malformed file raises any of these.
        msg = f"{checked.table} is malformed: {error}"
        raise PlanError(Problem(msg, "options.table")) from None


def read_table(text: str, options: ReplayOptions) -> RecordedTable:
    """Return the table of a file's text; the text shows the format.

    Raises:
        PlanError: It is in no known format, or has errors.
    """
    if not text.lstrip().startswith("{"):
        return read_csv(text, options)
    document = read_document(text, "table")
    columns = ("parameters", "elapsed", "setup", "failure", "done", "bound", "cores", "worker")
    given = [name for name in columns if getattr(options, name) is not None]
    if given:
        msg = f"{given[0]} names a column of a CSV file, but {options.table} is JSON"
        raise PlanError(Problem(msg, f"options.{given[0]}"))
    if "cache" in document:
        return read_cache(document, options)
    if "results" in document:
        return read_results(document, options)
    msg = f"{options.table} has neither `cache` (Kernel Tuner) nor `results` (T4)"
    raise PlanError(Problem(msg, "options.table"))


def shipped_table(name: str) -> bytes:
    """Return a table that ships with autotune."""
    return (resources.files("studies") / "tables" / f"{name}.csv").read_bytes()


def _read_start(path: Path) -> bytes:
    """Return a file, or enough of it to see that it is too large."""
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def _text(name: str, option: str) -> str:
    """Return the text of a file that may be compressed.

    Raises:
        PlanError: It cannot be read.
    """
    path = Path(name).expanduser()
    try:
        raw = shipped_table(name) if not path.is_file() and name in _SHIPPED else _read_start(path)
        if raw.startswith(_SQLITE):
            msg = f"{name} is a storage of autotune; say which of its studies: study = 'NAME'"
            raise PlanError(Problem(msg, "options.study"))
        packed = raw.startswith(_GZIP) and len(raw) <= _MOST_BYTES
        content = gzip.GzipFile(fileobj=io.BytesIO(raw)).read(_MOST_BYTES + 1) if packed else raw
        if len(content) > _MOST_BYTES:
            msg = f"{name} is larger than {_MOST_BYTES // 2**20} MiB, which a table may have at most"
            raise PlanError(Problem(msg, f"options.{option}"))
        return content.decode("utf-8-sig")
    except OSError as error:
        shipped = f"; shipped tables: {', '.join(_SHIPPED)}" if option == "table" else ""
        reason = error.strerror or "it is broken"
        msg = f"cannot read {name}: {reason}{shipped}"
    except (UnicodeDecodeError, EOFError, zlib.error):
        msg = f"{name} is neither text nor compressed text"
    raise PlanError(Problem(msg, f"options.{option}"))


def read_document(text: str, option: str) -> dict[str, Any]:
    """Return a JSON object; an unclosed cache of Kernel Tuner is accepted.

    Raises:
        PlanError: It is not an object; the message names the `option` that gave it.
    """
    try:
        found = json.loads(text, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        # Kernel Tuner closes a cache only when it is read again.
        try:
            found = json.loads(text.rstrip().rstrip(",") + "}\n}", parse_int=_whole)
        except (ValueError, RecursionError):
            msg = f"this is not JSON: {error}"
            raise PlanError(Problem(msg, f"options.{option}")) from None
    if not isinstance(found, dict):
        msg = "this is not a JSON object"
        raise PlanError(Problem(msg, f"options.{option}"))
    return found


def _whole(text: str) -> float:
    """Return a whole number of JSON; one with more digits than 64 bits hold as a float, perhaps infinity."""
    return int(text) if len(text) < MOST_DIGITS else float(text)


def _read_space(table: RecordedTable, options: ReplayOptions) -> _Space:
    """Return the space of a file."""
    assert options.space is not None
    document = read_document(_text(options.space, "space"), "space")
    if "ConfigurationSpace" in document:
        definition = read_t1(document)
    elif "parameters" in document:
        read = Space.from_dict(document)
        definition = Definition(read.parameters, read.constraints, read.facts, _default_of(read))
    else:
        msg = f"{options.space} has neither `ConfigurationSpace` (T1) nor `parameters` (autotune)"
        raise PlanError(Problem(msg, "options.space"))
    names = {parameter.name for parameter in definition.parameters}
    missing = [name for name in table.parameters if name not in names]
    missing += [name for name in names if name not in table.parameters]
    if missing:
        msg = f"the space and the table do not have the same parameters: {', '.join(sorted(missing))}"
        raise PlanError(Problem(msg, "options.space"))
    return _Space(definition)


def _default_of(space: Space) -> Mapping[str, Value] | None:
    try:
        return space.default()
    except SpaceError:
        return None


def _derive_space(table: RecordedTable, options: ReplayOptions, machine: Mapping[str, Any]) -> _Space:
    """Return the space that holds exactly what was measured."""
    called = usable_names(table.parameters, machine)
    key = _key(table, options.default, called) if options.default is not None else table.first_good()
    if key is None:
        key = next(iter(table.recordings))
    parameters = tuple(
        parameter_of(column, called[column], values, value)
        for column, values, value in zip(table.parameters, table.distinct(), key, strict=True)
    )
    notes = [f"column {column!r} is called {name} here" for column, name in called.items() if column != name]
    definition = Definition(parameters, (), {}, None)
    names = tuple(called[name] for name in table.parameters)
    default = {name: value for name, value in zip(names, key, strict=True) if value is not None}
    if options.default is None:
        notes.append(
            "default configuration: the first of the table that has a value; `default` of the options says another"
        )
    return _Space(replace(definition, default=default), tuple(notes))


def _key(table: RecordedTable, default: Mapping[str, Value], called: Mapping[str, str]) -> Key:
    """Return the key of a configuration that the options give by columns, or by the names of parameters."""
    known = {**{name: name for name in called}, **{name: column for column, name in called.items()}}
    unknown = [name for name in default if name not in known]
    if unknown:
        msg = f"the table has no parameter {unknown[0]!r}; its parameters: {', '.join(called)}"
        raise PlanError(Problem(msg, "options.default"))
    given = {known[name]: value for name, value in default.items()}
    key = tuple(given.get(name) for name in table.parameters)
    if key not in table.recordings:
        msg = f"the default configuration {dict(default)} was not recorded"
        raise PlanError(Problem(msg, "options.default"))
    return key


def _make_plan(table: RecordedTable, space: _Space, options: ReplayOptions, digest: str) -> Plan:
    definition, notes = space.definition, [*space.notes]
    parameters = {parameter.name: parameter for parameter in definition.parameters}
    order = list(parameters) if options.space is None else list(table.parameters)
    recordings, strangers = {}, 0
    for key, recording in table.recordings.items():
        try:
            own = tuple(value_of(parameters[name], value) for name, value in zip(order, key, strict=True))
        except ValueError:
            strangers += 1
            continue
        recordings[own] = recording
    aligned = RecordedTable(tuple(order), table.metric, recordings, table.others)
    if strangers:
        notes.append(f"{strangers} recorded configurations have values that the space does not have: left out")
    if not recordings:
        msg = "none of the recorded configurations has values of the space"
        raise PlanError(Problem(msg, "options.space"))
    default, more = _default(aligned, definition, options)
    chosen = tuple(with_default(one, default.get(one.name)) for one in definition.parameters)
    constraints: tuple[Constraint, ...] = definition.constraints
    whole = Space(chosen, constraints, definition.facts)
    size = whole.size.value if options.space is not None else math.prod(len(values) for values in table.distinct())
    if options.space is None:
        if whole.raw_size != len(recordings):
            constraints = (Listed.of(_MEASURED, order, recordings, _REASON),)
            notes.append(f"recorded: {len(recordings)} of {size} combinations; the space holds no other")
    else:
        notes.append(_coverage(aligned, whole))
        if options.unrecorded == "leave-out":
            name = _free_name({constraint.name for constraint in constraints})
            constraints = (*constraints, Listed.of(name, order, recordings, _REASON))
    objective = ReplayObjective(aligned)
    return Plan(
        objective=objective,
        parameters=chosen,
        constraints=constraints,
        facts=dict(definition.facts),
        identity=_identity(options, digest),
        notes=(_summary(aligned, options), *notes, *more, *_time_notes(aligned)),
        recorded=objective.draw,
        workers=aligned.workers,
        space_size=size,
    )


def _free_name(taken: Collection[str]) -> str:
    """Return a name for the constraint that is not taken: a replay may be replayed in turn."""
    name = _MEASURED
    while name in taken:
        name += " again"
    return name


def _default(
    table: RecordedTable, definition: Definition, options: ReplayOptions
) -> tuple[Mapping[str, Value], list[str]]:
    """Return the default configuration, and remarks on how it was found."""
    if options.default is not None and options.space is not None:
        if table.recording(options.default) is None:
            msg = f"the default configuration {options.default} was not recorded"
            raise PlanError(Problem(msg, "options.default"))
        return options.default, []
    if definition.default is not None:
        recorded = table.recording(definition.default) is not None
        if options.space is None or recorded:
            return definition.default, []
    key = table.first_good() or next(iter(table.recordings))
    note = "default configuration: the first of the table that has a value, since the space has none that was recorded"
    return table.configuration(key), [note]


def _coverage(table: RecordedTable, space: Space) -> str:
    inside = sum(space.valid_indices(space.indices([table.configuration(key) for key in table.recordings])))
    size = space.size
    return f"recorded: {inside} of the {size} valid configurations of the space"


def _summary(table: RecordedTable, options: ReplayOptions) -> str:
    runs = [run for recording in table.recordings.values() for run in recording.runs]
    failed = sum(run.failure is not None for run in runs)
    capped = sum(run.bound is not None for run in runs)
    parts = [f"{len(runs)} runs of {len(table.recordings)} configurations"]
    parts += [f"{failed} failed"] if failed else []
    parts += [f"{capped} stopped since they had lost"] if capped else []
    return f"table {Path(options.table).name}: {', '.join(parts)}"


def _time_notes(table: RecordedTable) -> list[str]:
    takes_time = any(run.elapsed_s > 0.0 for recording in table.recordings.values() for run in recording.runs)
    return [] if takes_time else ["the table does not say how long runs took: simulated time stands still"]


def _identity(options: ReplayOptions, digest: str) -> dict[str, str]:
    # The path of the file and the default do not change measurements.
    meaning = options.model_dump(exclude={"table", "space", "default", "unrecorded"}, mode="json")
    columns = hashlib.sha256(json.dumps(meaning, sort_keys=True).encode()).hexdigest()[:_DIGITS]
    return {"table": f"sha256:{digest}", "columns": f"sha256:{columns}"}
