"""Results files of the schema T4: one entry for each tested configuration, with times, validity and measurements.

Source: `schemas/T4.json` of AutoTuningAssociation/autotuning_methodology (MIT).
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from objectives.base import FailureKind, Metric, PlanError
from objectives.replay.options import ReplayOptions, Scale, others_of, scale_of
from objectives.replay.table import Key, RecordedTable, Recording, TableRun
from objectives.units import SECONDS, usual_units
from spaces.parameters.problem import Problem

_FAILURES = {
    "timeout": FailureKind.TIMED_OUT,
    "compile": FailureKind.APPLICATION_ERROR,
    "runtime": FailureKind.APPLICATION_ERROR,
    "constraints": FailureKind.APPLICATION_ERROR,
    "correctness": FailureKind.INVALID_RESULT,
}


def read_results(document: Mapping[str, Any], options: ReplayOptions) -> RecordedTable:
    """Return the table of a results file; entries of the same configuration are its repeats.

    Raises:
        PlanError: It is not such a file, or lacks the metric; the message says what and where.
    """
    entries = document["results"]
    if not isinstance(entries, Sequence) or not entries:
        msg = "T4 results hold a list of entries in `results`"
        raise PlanError(Problem(msg, "options.table"))
    unit = (document.get("metadata") or {}).get("timeunit") or "milliseconds"
    if unit not in SECONDS:
        msg = f"the time unit of the file is {unit!r}; known: {', '.join(usual_units('s'))}"
        raise PlanError(Problem(msg, "options.table"))
    try:
        names = tuple(entries[0]["configuration"])
        metric = options.metric or (entries[0].get("objectives") or ["time"])[0]
        clock = (entries[0].get("objectives") or ["time"])[0]
        known = {str(one.get("name")) for entry in entries for one in entry.get("measurements") or ()} | {clock}
        if metric not in known:
            msg = f"the results have no {metric!r}; they have {', '.join(sorted(known))}"
            raise PlanError(Problem(msg, "options.metric"))
        scale = scale_of(options, metric, _unit(entries, metric, unit if metric == clock else None))
        others = others_of(options, lambda name: _unit(entries, name, None))
        unknown = [other.name for other in others if other.name not in known - {clock}]
        if unknown:
            msg = f"the results have no measurements {unknown[0]!r}; they have {', '.join(sorted(known - {clock}))}"
            raise PlanError(Problem(msg, "options.metrics"))
        # Times of single runs are recorded only for the file's own objective, if that is a time; they are in its unit.
        runs_s = SECONDS[unit] if metric == clock and scale.metric.kind == "time" else None
        found: dict[Key, list[Recording]] = {}
        for entry in entries:
            key = tuple(entry["configuration"][name] for name in names)
            recording = _recording(entry, scale, SECONDS[unit], runs_s, repeats=options.repeats)
            found.setdefault(key, []).append(_with_others(recording, entry, others))
    except (KeyError, TypeError, IndexError) as error:
        msg = f"an entry of the results cannot be read: {error!r}"
        raise PlanError(Problem(msg, "options.table")) from None
    return RecordedTable(names, scale.metric, {key: _join_recordings(parts) for key, parts in found.items()}, others)


def _with_others(recording: Recording, entry: Mapping[str, Any], others: Sequence[Metric]) -> Recording:
    """Return a recording with the means of the other metrics in each run, since single values are not recorded."""
    values = {other.name: _values_of(entry, other.name) for other in others}
    means = {name: fmean(known) for name, known in values.items() if known and all(map(math.isfinite, known))}
    runs = (replace(run, others=means if run.value is not None else {}) for run in recording.runs)
    return replace(recording, runs=tuple(runs))


def _unit(entries: Sequence[Mapping[str, Any]], metric: str, time_unit: str | None) -> str | None:
    """Return the unit of a metric's first measurement, else `time_unit`."""
    for entry in entries:
        for measured in entry.get("measurements") or ():
            if measured.get("name") == metric:
                return measured.get("unit") or time_unit
    return time_unit


def _join_recordings(parts: Sequence[Recording]) -> Recording:
    return Recording(tuple(run for part in parts for run in part.runs), parts[0].setup_s)


def _recording(
    entry: Mapping[str, Any], scale: Scale, unit_s: float, runs_s: float | None, *, repeats: bool
) -> Recording:
    times = entry["times"]
    setup_s = unit_s * _number(times.get("compilation_time"))
    runtimes = [float(one) for one in times.get("runtimes") or ()]
    together_s = unit_s * sum(one for one in runtimes if math.isfinite(one))
    invalidity = entry["invalidity"]
    if invalidity != "correct" or not entry["correctness"]:
        why = invalidity if invalidity != "correct" else "correctness"
        kind = _FAILURES.get(why, FailureKind.APPLICATION_ERROR)
        run = TableRun(together_s, failure=kind, code=str(why), message=f"{why}: failed when it was recorded")
        return Recording((run,), setup_s)
    values = _values(entry, scale, [] if runs_s is None else [runs_s * one for one in runtimes], repeats=repeats)
    if not values or not all(math.isfinite(value) for value in values):
        name = scale.metric.name
        bad = TableRun(together_s, failure=FailureKind.INVALID_RESULT, code="no-number", message=f"no {name} recorded")
        return Recording((bad,), setup_s)
    is_time = scale.metric.kind == "time"
    each_s = together_s / len(values)
    return Recording(tuple(TableRun(max(each_s, value if is_time else 0.0), value) for value in values), setup_s)


def _values(entry: Mapping[str, Any], scale: Scale, runs_s: Sequence[float], *, repeats: bool) -> list[float]:
    """Return the values of an entry: single runs if they are recorded, else the measurement, which is their mean."""
    if len(runs_s) > 1 and repeats:
        return list(runs_s)
    return [scale.factor * value for value in _values_of(entry, scale.metric.name)] or list(runs_s)


def _values_of(entry: Mapping[str, Any], name: str) -> list[float]:
    """Return the values of an entry's measurements of this name."""
    values = [one.get("value") for one in entry.get("measurements") or () if one.get("name") == name]
    listed = [item for value in values for item in (value if isinstance(value, list) else [value])]
    return [float(item) for item in listed if isinstance(item, int | float)]


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else 0.0
