"""Novelty: the respect in which a setting is new.

Hiding known rows that are new in the same respect shows how certain a model is. Of several respects the first counts:
machine, installation, workload, nodes.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Words
from autotune.records.measurement import INSTALLATION, Setting

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
        alike: The number of rows with the same machine, build, workload and nodes as the setting.
        others: The number of known machines, builds and so on; the least if the setting is new in several respects,
            None if nothing is new.
    """

    respect: str
    by: str
    labels: Words
    label: str
    alike: int
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
    alike = by_setting(settings, _whole).count(_whole(setting))
    counts = [len(set(by_setting(settings, label)) - {label(setting)}) for name, label in respects if name in newly]
    counts += _others_of_facts(settings, setting) if "workload" in newly else []
    others = min(counts, default=None) if new != "setting" else None
    return Novelty("" if new == "setting" else new, by, labels, str(label(setting)), alike, others)


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


def inside(train: Sequence[FloatArray], columns: Sequence[FloatArray]) -> npt.NDArray[np.bool_]:
    """Return which rows, (m,), have every number between half the least and twice the greatest known number."""
    is_inside = np.ones(len(columns[0]) if columns else 0, dtype=bool)
    for known, column in zip(train, columns, strict=True):
        low, high = limits(known)
        is_inside &= np.isnan(column) | ((column >= low) & (column <= high))
    return is_inside


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
