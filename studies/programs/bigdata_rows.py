"""Rows that are spread over ranks, for `bigdata.py`."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from bigdata_blas import Blas, Matrix

Labels = npt.NDArray[np.int64]
Together = Callable[[npt.NDArray[np.float64]], None]
"""Sums an array over all ranks, in place: the only communication between ranks."""

# Rows are drawn in batches of this size, wherever the border between two ranks is.
DRAWN = 500


@dataclass(frozen=True)
class Rows:
    """The rows of a rank, (n, p), with their classes, (n,), the BLAS library, and the sum over ranks.

    All ranks together have `total` rows of `kinds` classes. `block` is the number of rows per product; 0: all.
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
        """The number of columns."""
        return int(self.x.shape[1])

    def blocks(self) -> Iterator[slice]:
        """Yield the blocks of rows."""
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
    """Return the first row of a rank, and the row after its last."""
    return total * rank // ranks, total * (rank + 1) // ranks


def make_rows(total: int, columns: int, means: tuple[float, ...], part: tuple[int, int]) -> tuple[Matrix, Labels]:
    """Return normally distributed rows around the means of their classes, (n, columns), and the classes, (n,)."""
    first, end = part
    x, classes = np.empty((end - first, columns)), np.arange(first, end) % len(means)
    for start in range(first - first % DRAWN, end, DRAWN):
        drawn = np.random.default_rng([total, start]).standard_normal((DRAWN, columns))
        begin, stop = max(first, start), min(end, start + DRAWN)
        x[begin - first : stop - first] = drawn[begin - start : stop - start]
    x += np.array(means)[classes][:, None]
    return x, classes
