"""How pw.x divides its work over ranks: the rules by which it chooses, the division of cases, and sentences on it.

From version 7.1 on pw.x chooses what its command line leaves out, by `setup_para` in PW/src/setup.f90 (read in 7.2).
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, floor, isqrt

import numpy as np

from objectives.shapes.columns import CaseColumns, Column
from spaces import Value

_FIRST = (7, 1)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})")
_MOST_TASK_GROUPS = 16
_BLOCK_OF_BANDS = 100  # the smallest width of a rank's block of the subspace matrix


def chooses_layout(version: str | None) -> bool:
    """Return whether this version of pw.x chooses the pools, task groups and `ndiag` that it is not given."""
    match = _VERSION.match(version or "")
    return match is not None and (int(match[1]), int(match[2])) >= _FIRST


@lru_cache(maxsize=4096)
def automatic_pools(ranks: int, kpoints: int, planes: int) -> int:
    """Return the pools: one, or the fewest that leave each pool at most half as many ranks as the FFT grid has planes.

    If no number of pools does, return the largest that divides the ranks.
    """
    if ranks <= planes // 2 or kpoints < 2:
        return 1
    dividing = [pools for pools in range(2, kpoints + 1) if ranks % pools == 0]
    small_enough = (pools for pools in dividing if ranks // pools <= planes // 2)
    return next(small_enough, dividing[-1] if dividing else 1)


@lru_cache(maxsize=4096)
def automatic_task_groups(ranks_of_group: int, bands: int, planes: int) -> int:
    """Return the task groups of a band group: one, or the fewest that make up for more ranks than planes."""
    if ranks_of_group <= planes:
        return 1
    counts = range(2, min(bands, _MOST_TASK_GROUPS) + 1)
    fitting = (n for n in counts if ranks_of_group % n == 0 and ranks_of_group // n < planes // 4)
    return next(fitting, 1)


@lru_cache(maxsize=4096)
def automatic_ndiag(ranks_of_group: int, bands: int) -> int:
    """Return the ranks that share the subspace problem: a square, with blocks about 100 bands wide."""
    side = min(floor(bands / _BLOCK_OF_BANDS + 0.5), isqrt(ranks_of_group))
    return max(1, side) ** 2


@dataclass(frozen=True)
class Division:
    """The division of each case, as asked for or as pw.x chooses it; columns, (n,) each."""

    pools: Column
    groups: Column
    tasks: Column
    ndiag: Column

    @classmethod
    def of(cls, known: CaseColumns, bands: Column, planes: Column) -> "Division":
        """Return the division of cases with these numbers of `bands` and `planes`, NaN where unknown."""
        ranks, kpoints = known.number("np", 1.0), known.number("kpoints")
        choosing = np.array([chooses_layout(version) for version in known.words("pw_version")], dtype=bool)
        pools = _choose(known.number("npool"), automatic_pools, choosing, ranks, kpoints, planes)
        groups = known.number("nbgrp", 1.0)
        of_group = ranks / pools / groups
        # Versions that do not choose take the largest square.
        square = np.floor(np.sqrt(ranks / pools)) ** 2
        ndiag = _choose(known.number("ndiag"), automatic_ndiag, choosing, of_group, bands, otherwise=square)
        ndiag = np.where(np.isnan(known.number("ndiag")) & ~(known.number("scalapack", 0.0) > 0.0), 1.0, ndiag)
        return cls(
            pools=pools,
            groups=groups,
            tasks=_choose(known.number("ntg"), automatic_task_groups, choosing, of_group, bands, planes),
            ndiag=ndiag,
        )


def _choose(
    given: Column, rule: Callable[..., int], choosing: np.ndarray, *amounts: Column, otherwise: float | Column = 1.0
) -> Column:
    """Return what is given, else the rule's choice if pw.x chooses and all amounts are known, else `otherwise`."""
    found = np.where(np.isnan(given), otherwise, given)
    chosen = np.isnan(given) & choosing & ~np.isnan(np.sum(amounts, axis=0))
    for row in np.flatnonzero(chosen):
        found[row] = rule(*(int(amount[row]) for amount in amounts))
    return found


def describe_layout(configuration: Mapping[str, Value], facts: Mapping[str, Value]) -> tuple[str, ...]:
    """Return a sentence for each level of parallelism; none for what is unknown of the problem or the machine."""
    configuration, sentences = _with_automatic(configuration, facts)
    ranks, pools, groups, diagonal = (_count(configuration, name) for name in ("np", "npool", "nbgrp", "ndiag"))
    in_pool = ranks // pools
    if "kpoints" in facts:
        sentences.append(_division_text(_count(facts, "kpoints"), "k-points", pools, "pool"))
    planes = _count(facts, "fft_smooth_z", _count(facts, "fft_dense_z"))
    if "fft_dense_z" in facts:
        own = in_pool // groups
        sentences.append(
            _division_text(planes, "planes of the FFT grid", own, f"rank of a {'band group' if groups > 1 else 'pool'}")
        )
    if "cores_per_node" in facts:
        cores = in_pool * _count(configuration, "threads")
        nodes = cores / _count(facts, "cores_per_node")
        sentences.append(f"a pool has {cores} cores, {nodes:.3g} node{'s' * (nodes > 1)}")
    if diagonal > 1:
        sentences.append(f"{diagonal} of {in_pool} ranks solve the subspace problem")
    return tuple(sentences)


def _with_automatic(
    configuration: Mapping[str, Value], facts: Mapping[str, Value]
) -> tuple[Mapping[str, Value], list[str]]:
    """Return the configuration with what pw.x chooses itself, and a sentence about that."""
    known = all(name in facts for name in ("kpoints", "bands", "fft_dense_z"))
    if "npool" in configuration or not known or not chooses_layout(str(facts.get("pw_version"))):
        return configuration, []
    ranks, planes = _count(configuration, "np"), _count(facts, "fft_smooth_z", _count(facts, "fft_dense_z"))
    pools = automatic_pools(ranks, _count(facts, "kpoints"), planes)
    ndiag = automatic_ndiag(ranks // pools, _count(facts, "bands"))
    return {**configuration, "npool": pools, "ndiag": ndiag}, [f"pw.x chooses npool={pools} ndiag={ndiag} itself"]


def _division_text(amount: int, what: str, parts: int, part: str) -> str:
    most = ceil(amount / parts)
    if parts == 1:
        return f"{amount} {what} in one {part}"
    first, *rest = part.split(" ", 1)
    text = f"{amount} {what} over {parts} {' '.join([f'{first}s', *rest])}: {most} each"
    return text if amount % parts == 0 else f"{text} at most, {amount / parts / most:.0%} of the time is used"


def _count(values: Mapping[str, Value], name: str, default: int = 1) -> int:
    value = values.get(name, default)
    return int(value) if isinstance(value, int | float) else default
