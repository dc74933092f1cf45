"""Rows that are spread over ranks, with what they are computed with: see `bigdata.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bigdata_blas import Blas, Matrix

Labels = npt.NDArray[np.int64]
Together = Callable[[npt.NDArray[np.float64]], None]
"""Adds up an array over all ranks, in place: all that ranks tell each other."""

# Rows are drawn so many at a time, wherever the border between two ranks is.
DRAWN = 500


@dataclass(frozen=True)
class Rows:
    """The rows of a rank, (n, p), with their classes, (n,), and what they are computed with.

    `total` rows of `kinds` classes are there on all ranks. `block` rows are computed at once; 0: all that the rank has.
    """

    x: Matrix
    classes: Labels
    kinds: int
    total: int
    blas: Blas
    together: Together
    block: int = 0

    @property
    def columns(self) -> int:
        """How many numbers a row has."""
        return int(self.x.shape[1])

    def blocks(self) -> Iterator[slice]:
        """Yield the parts of the rows that are computed at once."""
        rows = len(self.x)
        step = self.block or max(1, rows)
        for first in range(0, rows, step):
            yield slice(first, min(rows, first + step))

    def mean(self) -> Matrix:
        """Return the mean of each column over all ranks, (p,)."""
        sums = np.zeros(self.columns)
        for part in self.blocks():
            sums += self.x[part].sum(axis=0)
        self.together(sums)
        return sums / self.total


def share(total: int, ranks: int, rank: int) -> tuple[int, int]:
    """Return which of all rows a rank has: from the first one to before the second."""
    return total * rank // ranks, total * (rank + 1) // ranks


def made(total: int, columns: int, means: tuple[float, ...], part: tuple[int, int]) -> tuple[Matrix, Labels]:
    """Return rows of normal numbers, (n, columns), and their classes, (n,); rows of each class are around its mean."""
    first, end = part
    x, classes = np.empty((end - first, columns)), np.arange(first, end) % len(means)
    for start in range(first - first % DRAWN, end, DRAWN):
        drawn = np.random.default_rng([total, start]).standard_normal((DRAWN, columns))
        begin, stop = max(first, start), min(end, start + DRAWN)
        x[begin - first : stop - first] = drawn[begin - start : stop - start]
    x += np.array(means)[classes][:, None]
    return x, classes
