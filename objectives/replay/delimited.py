"""CSV files: a header, parameters and a metric as columns, a line for each run.

Lines with the same parameters are repeats of one configuration. A column holds whole numbers if all its values do; else
numbers; else `true` and `false`; else words. An empty parameter has no value. Lines that begin with `#` before the
header are comments. The output of `autotune trials --runs --format csv` is
recognised by its header.
"""

import csv
import io
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from statistics import fmean, median
from typing import Any

from objectives.base import FailureKind, PlanError
from objectives.replay.options import RecordedMetric, ReplayOptions, Scale, others_of, scale_of
from objectives.replay.table import Key, RecordedTable, Recording, TableRun
from spaces import Value
from spaces.parameters.problem import Problem

_YES = frozenset({"1", "true", "yes", "ok", "done"})
_MOST_LINES = 500_000  # reading these takes seconds and hundreds of megabytes
MOST_DIGITS = 20
"""A whole number with as many characters may be too large for 64 bits."""
_NO = frozenset({"", "0", "false", "no"})
_REMARKS = re.compile(r"\A(?:#.*\n)*")
_TRUTH = {"true": True, "false": False}

Row = Mapping[str, str]


def read_csv(text: str, options: ReplayOptions) -> RecordedTable:
    """Return the table of a CSV file.

    Raises:
        PlanError: It has errors; all are reported.
    """
    header, rows = read_lines(text)
    options = _with_exported_columns(header, options)
    errors = _column_errors(header, options)
    if errors or options.metric is None or options.parameters is None:
        raise PlanError(errors)
    if (wrong := find_line_error(rows)) is not None:
        raise PlanError(Problem(wrong, "options.table"))
    scale, others = scale_of(options, options.metric, None), others_of(options)
    columns = [parse_column([row[name] for row in rows]) for name in options.parameters]
    grouped: dict[Key, list[Row]] = {}
    for key, row in zip(zip(*columns, strict=True), rows, strict=True):
        grouped.setdefault(key, []).append(row)
    recordings = {key: _recording(group, scale, options) for key, group in grouped.items()}
    return RecordedTable(tuple(options.parameters), scale.metric, recordings, others)


def read_lines(text: str) -> tuple[list[str], list[Row]]:
    """Return the header and the lines below it, at most one more than allowed.

    A line with too few or too many cells holds a None.
    """
    reader = csv.DictReader(io.StringIO(_REMARKS.sub("", text, count=1)))
    return list(reader.fieldnames or ()), list(islice(reader, _MOST_LINES + 1))


def find_line_error(rows: Sequence[Row]) -> str | None:
    """Return what is wrong with the lines of a file; None if nothing is."""
    if len(rows) > _MOST_LINES:
        return f"the table has more than {_MOST_LINES:,} lines; use a part of it"
    broken = next((number for number, row in enumerate(rows, 2) if None in row or None in row.values()), None)
    if broken is not None:
        return f"line {broken} does not have as many values as the header has columns"
    return None if rows else "the table has no line below its header"


def _with_exported_columns(header: Sequence[str], options: ReplayOptions) -> ReplayOptions:
    """Return the options completed by the header of `autotune trials --runs --format csv`."""
    if header[:2] != ["trial", "series"] or options.metric not in header or "job_s" not in header:
        return options
    end = header.index("job_s")
    # Columns for steps and for other load on the machine may follow.
    if list(header[end : end + 4]) != ["job_s", "cores", "failure", "bound"]:
        return options
    first = header.index(options.metric)
    defaults: dict[str, Any] = {
        "parameters": header[2:first] or None,
        "metrics": [RecordedMetric(name=name) for name in header[first + 1 : end]] or None,
        "elapsed": "job_s",
        "cores": "cores",
        "failure": "failure",
        "bound": "bound",
    }
    missing = {name: value for name, value in defaults.items() if getattr(options, name) is None}
    return options.model_copy(update=missing)


def _column_errors(header: Sequence[str], options: ReplayOptions) -> list[Problem]:
    known = ", ".join(header) or "none"
    errors: list[Problem] = []
    if options.metric is None:
        needed = f"a CSV table needs metric, the column that is optimised; its columns: {known}"
        errors.append(Problem(needed, "options.metric"))
    if options.parameters is None:
        needed = f"a CSV table needs parameters, a list of columns; its columns: {known}"
        errors.append(Problem(needed, "options.parameters"))
    named = {
        name: getattr(options, name)
        for name in ("metric", "elapsed", "setup", "failure", "done", "bound", "cores", "worker")
    }
    named |= {f"parameters.{place}": name for place, name in enumerate(options.parameters or ())}
    named |= {f"metrics.{place}": other.name for place, other in enumerate(options.metrics or ())}
    errors += [
        Problem(f"the table has no column {column!r}; its columns: {known}", f"options.{place}")
        for place, column in named.items()
        if column is not None and column not in header
    ]
    if options.metric is not None and options.metric in (options.parameters or ()):
        errors.append(Problem(f"{options.metric!r} is the metric, and no parameter", "options.parameters"))
    errors += [
        Problem(f"{other.name!r} is a parameter, and no metric", f"options.metrics.{place}")
        for place, other in enumerate(options.metrics or ())
        if other.name in (options.parameters or ())
    ]
    return errors


def parse_column(texts: Sequence[str]) -> list[Value | None]:
    """Return a column's values in the narrowest type that fits all of them; None for empty ones."""
    given = dict.fromkeys(text for text in texts if text)
    readers: tuple[Callable[[str], Value], ...] = (_whole, _finite, _truth)
    for read in readers:
        try:
            known = {text: read(text) for text in given}
        except ValueError:
            continue
        return [known.get(text) for text in texts]
    return [text or None for text in texts]


def _whole(text: str) -> int:
    if len(text) >= MOST_DIGITS:
        raise ValueError(text)
    return int(_plain(text))


def _finite(text: str) -> float:
    value = float(_plain(text))
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _plain(text: str) -> str:
    # Python reads 4_16 as 416.
    if "_" in text:
        raise ValueError(text)
    return text


def _truth(text: str) -> bool:
    if text.lower() not in _TRUTH:
        raise ValueError(text)
    return _TRUTH[text.lower()]


def _recording(rows: Sequence[Row], scale: Scale, options: ReplayOptions) -> Recording:
    runs = [replace(_run(row, scale, options), worker=row[options.worker] if options.worker else "") for row in rows]
    setup_s = [_number(row, options.setup) or 0.0 for row in rows]
    cores = [int(_number(row, options.cores) or 1) for row in rows]
    if not options.repeats:
        runs = _average_runs(runs)
    return Recording(tuple(runs), median(setup_s), max(1, *cores))


def _average_runs(runs: Sequence[TableRun]) -> list[TableRun]:
    """Return one run for several, with the mean of their values and the sum of their times."""
    values = [run.value for run in runs if run.value is not None]
    if not values:
        return [runs[0]]
    measured = [run.others for run in runs if run.value is not None]
    names = dict.fromkeys(name for others in measured for name in others)
    means = {name: fmean(others[name] for others in measured if name in others) for name in names}
    return [TableRun(sum(run.elapsed_s for run in runs), fmean(values), others=means)]


def _run(row: Row, scale: Scale, options: ReplayOptions) -> TableRun:
    name = scale.metric.name
    number = _number(row, name)
    value = None if number is None else scale.factor * number
    known = _number(row, options.elapsed)
    least_s = value if value is not None and scale.metric.kind == "time" else 0.0
    elapsed_s = max(0.0, least_s if known is None else known)
    why = row[options.failure].strip() if options.failure is not None else ""
    if why.lower() not in _NO:
        return _failed_run(elapsed_s, why)
    if options.done is not None and row[options.done].strip().lower() not in _YES:
        return _failed_run(elapsed_s, f"was not done when it was recorded: {options.done} is {row[options.done]!r}")
    bound = _number(row, options.bound)
    if value is None and bound is not None:
        return TableRun(elapsed_s, bound=scale.factor * bound, code="capped")
    if value is None:
        return _failed_run(elapsed_s, f"no {name} was recorded")
    others = {other.name: _number(row, other.name) for other in options.metrics or ()}
    return TableRun(elapsed_s, value, others={name: known for name, known in others.items() if known is not None})


def _failed_run(elapsed_s: float, message: str) -> TableRun:
    """Return a failed run; a message that begins with a kind of failure sets the kind."""
    kinds = (kind for kind in FailureKind if message.startswith(kind.value))
    # An infrastructure error would be retried, but a record does not change.
    kind = next((kind for kind in kinds if kind is not FailureKind.INFRASTRUCTURE_ERROR), FailureKind.APPLICATION_ERROR)
    text = message.removeprefix(kind.value).removeprefix(": ") or message
    return TableRun(elapsed_s, failure=kind, code="recorded", message=text)


def _number(row: Row, column: str | None) -> float | None:
    if column is None:
        return None
    try:
        value = float(row[column])
    except ValueError:
        return None
    return value if math.isfinite(value) else None
