"""Novelty: the respect in which a setting is new, and sentences on how it lies outside the measurements.

Hiding known rows that are new in the same respect shows how certain a model is. Of several respects the first counts:
machine, installation, workload, nodes.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.similarity import squared_distances
from autotune.performance.regression.table import DesignMatrix, Words
from autotune.records.measurement import INSTALLATION, Facts, Measured, Setting
from spaces.expressions.quantities import Columns, FloatArray, column_of

_OF_PLACE = frozenset({"nodes", "cores", "machine_nodes"})
T = TypeVar("T")

# A value with at most this many rows still counts as new, if other values have more.
_FEW = 30
_LEAST_OTHERS = 2
_FINER = {
    "machine": ("installation", "setting"),
    "installation": ("setting",),
    "workload": ("setting",),
    "nodes": ("setting",),
}
_FOLDS = 5
_ROW_FOLDS = 10


@dataclass(frozen=True)
class Novelty:
    """The respect in which a setting is new.

    Attributes:
        respect: The respect; "" if nothing is new.
        by: The respect of the labels: the same, or a finer one if that has fewer than two other labels.
        labels: Labels of the rows, (n,); rows with equal labels are hidden together.
        label: The setting's own label.
        others: The number of known machines, builds and so on; the least if the setting is new in several respects,
            None if nothing is new.
    """

    respect: str
    by: str
    labels: Words
    label: str
    others: int | None = None

    @property
    def is_hidden_alike(self) -> bool:
        """Whether the hidden rows are as new as the setting, rather than new in a finer respect."""
        return self.by == (self.respect or "setting")

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        """Which rows have the setting's own label."""
        is_own: npt.NDArray[np.bool_] = self.labels == self.label
        return is_own

    @property
    def hides_single_rows(self) -> bool:
        """Whether single rows are hidden instead of whole labels, since fewer than two other labels are known."""
        return len(set(self.labels[~self.own].tolist())) < 2


def novelty(settings: Sequence[Setting], setting: Setting) -> Novelty:
    """Return the respect in which `setting` is new compared with the measured `settings`, (n,)."""
    respects = [*_respects(settings, setting), ("setting", _whole)]
    newly = [name for name, label in respects if _is_new(label(setting), by_setting(settings, label))]
    new = newly[0] if newly else "setting"
    names = [name for name, _ in respects]
    # One machine does not show how machines differ; hiding its builds or settings shows more than hiding runs.
    finer = [respect for respect in respects if respect[0] in _FINER.get(new, ())]
    by, label = next(
        (
            (name, label)
            for name, label in [respects[names.index(new)], *finer]
            if len(set(by_setting(settings, label)) - {label(setting)}) >= _LEAST_OTHERS
        ),
        ("setting", _whole),
    )
    labels = np.array([str(value) for value in by_setting(settings, label)], dtype=object)
    counts = [len(set(by_setting(settings, label)) - {label(setting)}) for name, label in respects if name in newly]
    counts += _others_of_facts(settings, setting) if "workload" in newly else []
    others = min(counts, default=None) if new != "setting" else None
    return Novelty("" if new == "setting" else new, by, labels, str(label(setting)), others)


def folds(novelty: Novelty, rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return the fold of each row, (n,), -1 for rows that stay visible.

    Whole labels are assigned together by size, each to the emptiest fold; single rows at random, in up to ten folds.
    """
    labels = novelty.labels
    if novelty.hides_single_rows:
        return rng.permutation(len(labels)) % min(len(labels), _ROW_FOLDS)
    counts = Counter(labels[~novelty.own].tolist())
    loads = np.zeros(min(_FOLDS, len(counts)))
    fold: dict[object, int] = {}
    for label, count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
        fold[label] = int(loads.argmin())
        loads[fold[label]] += count
    return np.array([fold.get(label, -1) for label in labels], dtype=np.intp)


def limits(known: FloatArray) -> tuple[float, float]:
    """Return the range in which a model may predict: half the least to twice the greatest known number."""
    there = known[~np.isnan(known)]
    if len(there) == 0:
        return -np.inf, np.inf
    ends = np.sort([there.min() * 0.5, there.min() * 2.0, there.max() * 0.5, there.max() * 2.0])
    return float(ends[0]), float(ends[-1])


def by_setting(settings: Sequence[Setting], label: Callable[[Setting], T]) -> list[T]:
    """Return the label of each setting, (n,), computed once per object: most settings are the same few objects."""
    labels = {id(setting): label(setting) for setting in {id(setting): setting for setting in settings}.values()}
    return [labels[id(setting)] for setting in settings]


Label = Callable[[Setting], Hashable]


def _respects(settings: Sequence[Setting], setting: Setting) -> Iterator[tuple[str, Label]]:
    yield "machine", lambda other: other.machine
    yield "installation", lambda other: (other.machine, installation(other))
    facts = _new_facts(settings, setting)
    # Label by the new facts only: a new cut-off is learnt from other cut-offs with any k-points.
    if facts:
        yield "workload", lambda other: tuple((name, other.workload_facts.get(name)) for name in facts)
    else:
        yield "workload", lambda other: other.workload
    if setting.nodes in {other.nodes for other in settings}:
        yield "nodes", lambda other: (other.machine, other.nodes)
    else:
        yield "nodes", lambda other: other.nodes


def installation(setting: Setting) -> tuple[tuple[str, object], ...]:
    """Return the known facts of the program's build."""
    facts = {**setting.machine_facts, **setting.workload_facts}
    return tuple((name, facts[name]) for name in sorted(INSTALLATION & set(facts)))


def _new_facts(settings: Sequence[Setting], setting: Setting) -> tuple[str, ...]:
    names = []
    for name, value in setting.workload_facts.items():
        values = [other.workload_facts.get(name) for other in settings]
        if name not in INSTALLATION and len(set(values) - {value}) >= _LEAST_OTHERS and _is_new(value, values):
            names.append(name)
    return tuple(names)


def _others_of_facts(settings: Sequence[Setting], setting: Setting) -> list[int]:
    """Return the number of other known values of each fact whose value is new: 1 if the fact never varied."""
    known = [
        (value, {other.workload_facts.get(name) for other in settings})
        for name, value in setting.workload_facts.items()
        if name not in INSTALLATION
    ]
    return [len(values) for value, values in known if value not in values]


def _is_new(value: Hashable, values: Sequence[Hashable]) -> bool:
    counts = Counter(values)
    own = counts[value]
    if own == 0:
        return True
    return own <= _FEW and sum(count > own for count in counts.values()) >= _LEAST_OTHERS


def _whole(setting: Setting) -> Hashable:
    return (setting.place, setting.workload, installation(setting))


def doubts(rows: Sequence[Measured], setting: Setting, unseen: Sequence[str]) -> tuple[str, ...]:
    """Return the doubts about a setting, whose words in the columns `unseen` were never measured."""
    settings = list({id(row.setting): row.setting for row in rows}.values())
    return (*_machine(settings, setting, unseen), *_workload(settings, setting))


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


def _machine(settings: Sequence[Setting], setting: Setting, unseen: Sequence[str]) -> Iterator[str]:
    machines = {other.machine: other for other in settings}
    is_new = setting.machine not in machines
    nearest = f"nearest machine: {_nearest(list(machines.values()), setting)}"
    facts = {**setting.machine_facts, **dict(installation(setting))}
    words = ", ".join(f"{name} {facts[name]!r}" for name in unseen if name in facts and name != "machine")
    if is_new:
        yield f"nothing was measured on {setting.machine}; {nearest}"
    elif words:
        yield f"nothing was measured with {words}"
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
