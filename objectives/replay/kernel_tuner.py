"""Cache files of Kernel Tuner: one entry for each configuration, with its times in milliseconds and how it failed.

Fields: van Werkhoven, Kernel Tuner, FGCS 90 (2019), and its documentation of cache files. `times` are single executions
of the kernel and `time` is their mean; `benchmark_time` is what all of them took, including the time between them;
`compile_time` was spent before.
"""

import math
from collections.abc import Collection, Mapping
from typing import Any

from objectives.base import FailureKind, Metric, PlanError
from objectives.replay.options import ReplayOptions, Scale, others_of, scale_of
from objectives.replay.table import Key, RecordedTable, Recording, TableRun
from spaces.parameters.problem import Problem

_MS = 1e-3
_ERROR = "__error__"

_FAILURES = {
    "CompilationFailedConfig": ("compile", "did not compile when it was recorded"),
    "RuntimeFailedConfig": ("runtime", "failed at run time when it was recorded"),
    "InvalidConfig": ("invalid", "was not valid when it was recorded"),
}


def read_cache(document: Mapping[str, Any], options: ReplayOptions) -> RecordedTable:
    """Return the table of a cache file.

    Raises:
        PlanError: It is not a cache, or lacks the metric; the message says what and where.
    """
    entries = document["cache"]
    names = document.get("tune_params_keys")
    if not isinstance(entries, Mapping) or not entries or not isinstance(names, list):
        msg = "a cache of Kernel Tuner has `tune_params_keys`, and entries in `cache`"
        raise PlanError(Problem(msg, "options.table"))
    objectives = document.get("objective")
    name = options.metric or (str(objectives[0]) if isinstance(objectives, list) and objectives else "time")
    scale = scale_of(options, name, "ms" if name == "time" else None)
    others = others_of(options)
    recordings: dict[Key, Recording] = {}
    for label, entry in entries.items():
        try:
            key = tuple(entry[parameter] for parameter in names)
            recordings[key] = _recording(entry, scale, _others(entry, others), repeats=options.repeats)
        except (KeyError, TypeError) as error:
            msg = f"entry {label!r} of the cache cannot be read: {error!r}"
            raise PlanError(Problem(msg, "options.table")) from None
    unknown = [other.name for other in others if not any(other.name in entry for entry in entries.values())]
    if unknown:
        figures = dict.fromkeys(name for entry in entries.values() for name in entry if _is_number(entry[name]))
        msg = f"no entry of the cache has {unknown[0]!r}; numbers that they have: {', '.join(figures)}"
        raise PlanError(Problem(msg, "options.metrics"))
    return RecordedTable(tuple(names), scale.metric, recordings, others)


def _others(entry: Mapping[str, Any], wanted: Collection[Metric]) -> dict[str, float]:
    """Return the wanted metrics that an entry has, in its own units."""
    return {other.name: float(entry[other.name]) for other in wanted if _is_number(entry.get(other.name))}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _recording(entry: Mapping[str, Any], scale: Scale, others: Mapping[str, float], *, repeats: bool) -> Recording:
    setup_s = _MS * float(entry.get("compile_time") or 0.0)
    together_s = _MS * float(entry.get("benchmark_time") or 0.0)
    # Since Kernel Tuner 1.5 a failure has a field of its own; before, it was in place of the time.
    name, error = scale.metric.name, entry.get(_ERROR)
    value = entry[name] if error is None else None
    failed = next((part for part in (error, value, entry.get("time")) if isinstance(part, str)), None)
    if failed is not None:
        code, message = _FAILURES.get(failed, ("failed", "failed when it was recorded"))
        run = TableRun(together_s, failure=FailureKind.APPLICATION_ERROR, code=code, message=f"{failed}: {message}")
        return Recording((run,), setup_s)
    values = entry.get("times") if name == "time" and repeats else None
    found = [scale.factor * float(one) for one in values or [value]]
    if not all(math.isfinite(one) for one in found):
        bad = TableRun(together_s, failure=FailureKind.INVALID_RESULT, code="no-number", message=f"{name} is no number")
        return Recording((bad,), setup_s)
    each_s = together_s / len(found) or (found[0] if scale.metric.kind == "time" else 0.0)
    return Recording(tuple(TableRun(max(each_s, _least_s(scale, one)), one, others=others) for one in found), setup_s)


def _least_s(scale: Scale, value: float) -> float:
    """Return the least time of a run: a metric that is a time is a part of it."""
    return value if scale.metric.kind == "time" else 0.0
