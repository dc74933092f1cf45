"""Novelty: in which respect a setting is new; how sure a model is of it follows from hiding what is known like that.

Of several respects the first counts, the one that tells least of itself: machine, installation, workload, nodes.
"""

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Words
from autotune.records.measurement import Setting

INSTALLATION = frozenset(
    {
        *("build", "compiler", "mpi", "blas", "system_blas", "pw_version", "openmp", "scalapack"),
        *("program_version", "library", "toolchain"),
    }
)
"""Facts of how the program was built; they count as the machine's wherever they stand."""

T = TypeVar("T")

# What is known of less often than this is still new, if other values are known better.
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
    """In which `respect` a setting is new ("" if in none), and `labels` of the rows, (n,), of what is hidden together.

    What is hidden `by` is the same respect, or a finer one where there are not two others to hide. `own`, (n,), are the
    rows with the setting's own `label`.
    """

    respect: str
    by: str
    labels: Words
    label: str

    @property
    def own(self) -> npt.NDArray[np.bool_]:
        """Which rows are of the setting itself, in that respect."""
        found: npt.NDArray[np.bool_] = self.labels == self.label
        return found


def novelty(settings: Sequence[Setting], setting: Setting) -> Novelty:
    """Return in which respect `setting` is new beside the `settings` of what was measured, (n,)."""
    respects = [*_respects(settings, setting), ("setting", _whole)]
    new = next((name for name, label in respects if _is_new(label(setting), by_setting(settings, label))), "setting")
    names = [name for name, _ in respects]
    # Of one machine alone nobody learns how machines differ; how its builds or settings do says more than its runs.
    finer = [one for one in respects if one[0] in _FINER.get(new, ())]
    by, label = next(
        (
            (name, label)
            for name, label in [respects[names.index(new)], *finer]
            if len(set(by_setting(settings, label)) - {label(setting)}) >= _LEAST_OTHERS
        ),
        ("setting", _whole),
    )
    labels = np.array([str(one) for one in by_setting(settings, label)], dtype=object)
    return Novelty("" if new == "setting" else new, by, labels, str(label(setting)))


def folds(labels: Words, own: npt.NDArray[np.bool_], rng: np.random.Generator) -> npt.NDArray[np.intp]:
    """Return the fold of each row, (n,): whole labels together, the largest first, each to the emptiest fold.

    Where nothing but one label could be hidden, rows are: as many folds as ten.
    """
    counts = Counter(labels[~own].tolist())
    if len(counts) < 2:
        return rng.permutation(len(labels)) % min(len(labels), _ROW_FOLDS)
    loads = np.zeros(min(_FOLDS, len(counts)))
    fold: dict[object, int] = {}
    for label, count in sorted(counts.items(), key=lambda item: (-item[1], str(item[0]))):
        fold[label] = int(loads.argmin())
        loads[fold[label]] += count
    return np.array([fold.get(label, -1) for label in labels], dtype=np.intp)


def inside(train: Sequence[FloatArray], asked: Sequence[FloatArray]) -> npt.NDArray[np.bool_]:
    """Return which rows, (m,), have no number outside of half the least to twice the greatest known."""
    found = np.ones(len(asked[0]) if asked else 0, dtype=bool)
    for known, column in zip(train, asked, strict=True):
        low, high = limits(known)
        found &= np.isnan(column) | ((column >= low) & (column <= high))
    return found


def limits(known: FloatArray) -> tuple[float, float]:
    """Return between which numbers a model may be asked: half the least, twice the greatest known."""
    there = known[~np.isnan(known)]
    if len(there) == 0:
        return -np.inf, np.inf
    ends = np.sort([there.min() * 0.5, there.min() * 2.0, there.max() * 0.5, there.max() * 2.0])
    return float(ends[0]), float(ends[-1])


def by_setting(settings: Sequence[Setting], label: Callable[[Setting], T]) -> list[T]:
    """Return the label of each of `settings`, (n,), of which most are the same few objects."""
    found = {id(one): label(one) for one in {id(one): one for one in settings}.values()}
    return [found[id(one)] for one in settings]


Label = Callable[[Setting], Hashable]


def _respects(settings: Sequence[Setting], setting: Setting) -> Iterator[tuple[str, Label]]:
    yield "machine", lambda one: one.machine
    yield "installation", lambda one: (one.machine, installation(one))
    facts = _new_facts(settings, setting)
    # By what is new of it: another cut-off is to be learnt from other cut-offs, whatever the k-points.
    if facts:
        yield "workload", lambda one: tuple((name, one.workload_facts.get(name)) for name in facts)
    else:
        yield "workload", lambda one: one.workload
    if setting.nodes in {one.nodes for one in settings}:
        yield "nodes", lambda one: (one.machine, one.nodes)
    else:
        yield "nodes", lambda one: one.nodes


def installation(setting: Setting) -> tuple[tuple[str, object], ...]:
    """Return what is known of how the program was built."""
    facts = {**setting.machine_facts, **setting.workload_facts}
    return tuple((name, facts[name]) for name in sorted(INSTALLATION & set(facts)))


def _new_facts(settings: Sequence[Setting], setting: Setting) -> tuple[str, ...]:
    names = []
    for name, value in setting.workload_facts.items():
        values = [one.workload_facts.get(name) for one in settings]
        if name not in INSTALLATION and len(set(values) - {value}) >= _LEAST_OTHERS and _is_new(value, values):
            names.append(name)
    return tuple(names)


def _is_new(value: Hashable, values: Sequence[Hashable]) -> bool:
    counts = Counter(values)
    own = counts[value]
    if own == 0:
        return True
    return own <= _FEW and sum(count > own for count in counts.values()) >= _LEAST_OTHERS


def _whole(setting: Setting) -> Hashable:
    return (setting.place, setting.workload, installation(setting))
