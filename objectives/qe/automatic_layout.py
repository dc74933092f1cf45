"""The division of the work that pw.x chooses itself, from version 7.1 on, where its command line does not say it.

Rules: `setup_para` in PW/src/setup.f90 of Quantum ESPRESSO 7.2; the release notes of 7.1 announce them.
"""

import re
from functools import lru_cache
from math import floor, isqrt

_FIRST = (7, 1)
_VERSION = re.compile(r"(\d{1,3})\.(\d{1,3})")
_MOST_TASK_GROUPS = 16
_BLOCK_OF_BANDS = 100  # a rank's block of the subspace matrix is at least so wide


def chooses_layout(version: str | None) -> bool:
    """Return whether this version of pw.x chooses pools, task groups and `ndiag` that it is not told."""
    match = _VERSION.match(version or "")
    return match is not None and (int(match[1]), int(match[2])) >= _FIRST


@lru_cache(maxsize=4096)
def automatic_pools(ranks: int, kpoints: int, planes: int) -> int:
    """Return the pools: one, or the fewest that leave a pool at most half as many ranks as the FFT grid has planes.

    Where no number of pools does, those are taken that divide the k-points most.
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
    """Return the ranks that share the subspace problem: a square whose blocks are about 100 bands wide."""
    side = min(floor(bands / _BLOCK_OF_BANDS + 0.5), isqrt(ranks_of_group))
    return max(1, side) ** 2
