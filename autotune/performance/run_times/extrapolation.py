"""Extrapolation: sentences on how a setting or a configuration lies outside the measurements."""

from collections.abc import Iterator, Sequence

import numpy as np

from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.similarity import squared_distances
from autotune.performance.run_times.novelty import limits
from autotune.records.measurement import INSTALLATION, Facts, Measured, Setting
from spaces.expressions.quantities import Columns, column_of

_OF_PLACE = frozenset({"nodes", "cores", "machine_nodes"})


def doubts(rows: Sequence[Measured], setting: Setting, unseen: Sequence[str], instead: str) -> tuple[str, ...]:
    """Return the doubts about a setting; `instead` describes the words that replace `unseen` ones."""
    settings = list({id(row.setting): row.setting for row in rows}.values())
    return (*_machine(settings, setting, unseen, instead), *_workload(settings, setting))


def doubts_of(known: Columns, cases: DesignMatrix) -> tuple[str, ...]:
    """Return the doubts about configurations, compared with the `known` columns of parameters, (n,) each."""
    remarks = []
    for name, column in cases.configuration.items():
        there = known.get(name)
        if there is None or "O" in {there.dtype.kind, column.dtype.kind}:
            continue
        for end in (np.nanmin, np.nanmax) if not np.isnan(column).all() else ():
            remarks += _number(name, float(end(column)), there)
    return tuple(dict.fromkeys(remarks))


def is_like_nothing(rows: Sequence[Measured], setting: Setting) -> bool:
    """Return whether a machine is new, and shares no word and no range of numbers with any measured machine."""
    settings = list({id(row.setting): row.setting for row in rows}.values())
    if setting.machine in {other.machine for other in settings}:
        return False
    facts = {name: value for name, value in setting.machine_facts.items() if name not in _OF_PLACE}
    for name, value in facts.items():
        values = [other.machine_facts[name] for other in settings if name in other.machine_facts]
        if not values:
            continue
        if value in values if isinstance(value, str | bool) else not _number(name, float(value), _column(values)):
            return False
    return True


def _machine(settings: Sequence[Setting], setting: Setting, unseen: Sequence[str], instead: str) -> Iterator[str]:
    machines = {other.machine: other for other in settings}
    is_new = setting.machine not in machines
    nearest = f"nearest machine: {_nearest(list(machines.values()), setting)}"
    if is_new:
        yield f"nothing was measured on {setting.machine}; {nearest}"
    facts = {**setting.workload_facts, **setting.machine_facts}
    words = [f"{name} {facts[name]!r}" for name in unseen if name in facts and name != "machine"]
    if words and not is_new:
        yield f"nothing was measured with {', '.join(words)}; taken as {instead}"
    elif is_new and instead:
        yield f"{setting.machine} is taken as {instead}"
    for name, value in setting.machine_facts.items():
        if name == "machine_nodes" or isinstance(value, str | bool):
            continue
        values = [other.machine_facts[name] for other in settings if name in other.machine_facts]
        if values:
            remarks = _number(name, float(value), _column(values))
            yield from remarks if is_new else (f"{remark}; {nearest}" for remark in remarks)


def _workload(settings: Sequence[Setting], setting: Setting) -> Iterator[str]:
    for name, value in setting.workload_facts.items():
        values = [other.workload_facts[name] for other in settings if name in other.workload_facts]
        if not values or name in INSTALLATION:
            continue
        if isinstance(value, str | bool):
            if value not in values:
                yield f"no measurement with {name} {value!r} (known: {', '.join(sorted(set(map(str, values))))})"
        else:
            yield from _number(name, float(value), _column(values))
    shared = any(name in other.workload_facts for other in settings for name in setting.workload_facts)
    if not shared and setting.workload not in {other.workload for other in settings}:
        yield f"nothing was measured of the workload {setting.workload!r}, and its size cannot be compared with others'"


def _number(name: str, value: float, known: np.ndarray[tuple[int], np.dtype[np.float64]]) -> list[str]:
    low, high = limits(known)
    if low <= value <= high:
        return []
    words = name.replace("_", " ")
    side, end = ("more than", np.nanmax(known)) if value > high else ("less than", np.nanmin(known))
    return [f"no measurement with {side} {end:.6g} {words}: {value:.6g} asked"]


def _column(values: Sequence[object]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    numbers = [value if isinstance(value, int | float) else None for value in values]
    column: np.ndarray[tuple[int], np.dtype[np.float64]] = column_of(numbers).astype(float)
    return column


def _nearest(settings: Sequence[Setting], setting: Setting) -> str:
    facts: list[Facts] = [*(other.machine_facts for other in settings), setting.machine_facts]
    away = squared_distances(facts)[-1, :-1]
    return settings[int(away.argmin())].machine
