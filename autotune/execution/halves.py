"""Halves: the cores of a session in two equal parts, for two runs at the same time.

Of two equal sockets, NUMA nodes or caches, each half gets one, so that the two runs share as little hardware as
possible. One without an equal is divided between the halves. The n-th cores of both halves have corresponding places.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from autotune.machines.this_machine import read_or_empty
from launchers import Resources
from launchers.cpus import CPUS, parse_cpu_list

_Cores = list[int]
_Split = tuple[_Cores, _Cores]
_KINDS = ("cpu_core", "cpu_atom")


@dataclass(frozen=True)
class CorePlace:
    """The place of a core, as Linux reports it.

    Attributes:
        kind: The kind of core in a hybrid processor.
        within: The names of its socket, NUMA node and caches, from the largest to the smallest; empty if unknown.
    """

    kind: str
    within: tuple[str, ...]


PlaceOf = Callable[[int], CorePlace]
"""Returns the place of the core of a hardware thread."""


def place_of(cpu: int, root: Path = Path("/")) -> CorePlace:
    """Return the place of the core of a hardware thread; `root` is the root of the kernel's files."""
    folder = root / f"{CPUS.lstrip('/')}/cpu{cpu}"
    socket = read_or_empty(folder / "topology/physical_package_id").strip()
    node = min((path.name for path in folder.glob("node[0-9]*")), default="")
    caches = {
        read_or_empty(index / "level").strip(): read_or_empty(index / "shared_cpu_list").strip()
        for index in folder.glob("cache/index*")
        if read_or_empty(index / "type").strip() != "Instruction"
    }
    return CorePlace(_kind(cpu, folder, root), (socket, node, caches.get("3", ""), caches.get("2", "")))


def _kind(cpu: int, folder: Path, root: Path) -> str:
    """Return the kind of a core; cores of one kind are equally fast."""
    for kind in _KINDS:
        try:
            if cpu in parse_cpu_list(read_or_empty(root / f"sys/devices/{kind}/cpus")):
                return kind
        except ValueError:
            continue
    return read_or_empty(folder / "cpu_capacity").strip()


@dataclass(frozen=True)
class Halves:
    """Two equal `sides` of cores, as hardware threads; empty if a session has none, for the reason `why`."""

    sides: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    why: str = ""

    @classmethod
    def of(cls, cpus: Collection[int], place: PlaceOf = place_of) -> Self:
        """Return the halves of hardware threads, one for each core; an odd one is left out."""
        first, second = _halve(sorted(cpus), {cpu: place(cpu) for cpu in cpus}, 0)
        return cls((tuple(first), tuple(second)))

    def lacks(self, wanted: Resources) -> str:
        """Return why two runs cannot have a half each; empty if they can."""
        half = len(self.sides[0])
        if self.why:
            return self.why
        if wanted.gpus:
            return "a run uses GPUs"
        if wanted.cores > half:
            return f"a run needs {_count_cores(wanted.cores)}, and half of this machine's are {_count_cores(half)}"
        return ""

    def cores(self, side: int, wanted: Resources) -> tuple[int, ...]:
        """Return the cores of a run in one half."""
        return tuple(sorted(self.sides[side][: max(1, wanted.cores)]))


def _count_cores(cores: int) -> str:
    return f"{cores} core{'s' * (cores != 1)}" if cores else "none"


def _halve(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> _Split:
    """Return two equal lists of cores; `cpus` share everything above `level`."""
    groups = _group(cpus, places, level)
    if groups is None:
        kinds: dict[str, _Cores] = defaultdict(list)
        for cpu in cpus:
            kinds[places[cpu].kind].append(cpu)
        pairs = [each[start : start + 2] for each in kinds.values() for start in range(0, len(each) - 1, 2)]
        return [first for first, _ in pairs], [second for _, second in pairs]
    alike: dict[object, list[_Cores]] = defaultdict(list)
    for group in groups:
        alike[_shape(group, places, level + 1)].append(_order(group, places, level + 1))
    first: _Cores = []
    second: _Cores = []
    for twins in alike.values():
        for one, other in zip(twins[::2], twins[1::2], strict=False):
            first += one
            second += other
        if len(twins) % 2:
            one, other = _halve(twins[-1], places, level + 1)
            first += one
            second += other
    return first, second


def _group(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> list[_Cores] | None:
    """Return the cores grouped by their socket, node or cache at a level; None below the last level."""
    groups: dict[str, _Cores] = defaultdict(list)
    for cpu in cpus:
        within = places[cpu].within
        if level >= len(within):
            return None
        groups[within[level]].append(cpu)
    return list(groups.values())


def _shape(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> object:
    """Return a description of a group of cores that is the same for equal groups."""
    groups = _group(cpus, places, level)
    if groups is None:
        return tuple(sorted(places[cpu].kind for cpu in cpus))
    return tuple(sorted((_shape(group, places, level + 1) for group in groups), key=repr))


def _order(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> _Cores:
    """Return the cores in an order in which the cores of equal groups correspond."""
    groups = _group(cpus, places, level)
    if groups is None:
        return sorted(cpus, key=lambda cpu: (places[cpu].kind, cpu))
    ranked = sorted(groups, key=lambda group: repr(_shape(group, places, level + 1)))
    return [cpu for group in ranked for cpu in _order(group, places, level + 1)]
