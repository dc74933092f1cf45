"""Halves: the cores of a session in two parts that are alike, for two runs at the same time.

Sockets, NUMA nodes and caches that have a twin go to one half as a whole, and their twin to the other: the two runs
then share as little as the machine lets them. What has no twin is halved within. The n-th core of one half is placed as
the n-th core of the other.
"""

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Self

from autotune.execution.topology import CorePlace, PlaceOf, place_of
from launchers import Resources

_Cores = list[int]
_Split = tuple[_Cores, _Cores]


@dataclass(frozen=True)
class Halves:
    """Two `sides` of cores (hardware threads) that are alike; none of a session that has no such cores, for `why`."""

    sides: tuple[tuple[int, ...], tuple[int, ...]] = ((), ())
    why: str = ""

    @classmethod
    def of(cls, cpus: Collection[int], place: PlaceOf = place_of) -> Self:
        """Return the halves of these hardware threads, one a core; of an odd number one is left over."""
        first, second = _halved(sorted(cpus), {cpu: place(cpu) for cpu in cpus}, 0)
        return cls((tuple(first), tuple(second)))

    def lacks(self, wanted: Resources) -> str:
        """Say why a run cannot have one half, while another one has the other; empty if it can."""
        half = len(self.sides[0])
        if self.why:
            return self.why
        if wanted.gpus:
            return "a run uses GPUs"
        if wanted.cores > half:
            return f"a run needs {_counted(wanted.cores)}, and half of this machine's are {_counted(half)}"
        return ""

    def cores(self, side: int, wanted: Resources) -> tuple[int, ...]:
        """Return the cores that a run has in a half."""
        return tuple(sorted(self.sides[side][: max(1, wanted.cores)]))


def _counted(cores: int) -> str:
    return f"{cores} core{'s' * (cores != 1)}" if cores else "none"


def _halved(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> _Split:
    """Return two lists of cores that are alike; what is grouped at a `level` has all before it in common."""
    groups = _grouped(cpus, places, level)
    if groups is None:
        kinds: dict[str, _Cores] = defaultdict(list)
        for cpu in cpus:
            kinds[places[cpu].kind].append(cpu)
        pairs = [each[start : start + 2] for each in kinds.values() for start in range(0, len(each) - 1, 2)]
        return [first for first, _ in pairs], [second for _, second in pairs]
    alike: dict[object, list[_Cores]] = defaultdict(list)
    for group in groups:
        alike[_shape(group, places, level + 1)].append(_ordered(group, places, level + 1))
    first: _Cores = []
    second: _Cores = []
    for twins in alike.values():
        for one, other in zip(twins[::2], twins[1::2], strict=False):
            first += one
            second += other
        if len(twins) % 2:
            one, other = _halved(twins[-1], places, level + 1)
            first += one
            second += other
    return first, second


def _grouped(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> list[_Cores] | None:
    """Return the cores by what they are in at a level; None where there are no more levels."""
    groups: dict[str, _Cores] = defaultdict(list)
    for cpu in cpus:
        within = places[cpu].within
        if level >= len(within):
            return None
        groups[within[level]].append(cpu)
    return list(groups.values())


def _shape(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> object:
    """Return what two groups of cores have in common that are alike: how many of which kind are together in what."""
    groups = _grouped(cpus, places, level)
    if groups is None:
        return tuple(sorted(places[cpu].kind for cpu in cpus))
    return tuple(sorted((_shape(group, places, level + 1) for group in groups), key=repr))


def _ordered(cpus: Sequence[int], places: dict[int, CorePlace], level: int) -> _Cores:
    """Return the cores in an order in which those of two groups that are alike correspond."""
    groups = _grouped(cpus, places, level)
    if groups is None:
        return sorted(cpus, key=lambda cpu: (places[cpu].kind, cpu))
    ranked = sorted(groups, key=lambda group: repr(_shape(group, places, level + 1)))
    return [cpu for group in ranked for cpu in _ordered(group, places, level + 1)]
