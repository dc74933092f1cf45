"""Propose every valid configuration once, in an order that is spread over the space from the beginning.

The valid set is a list in lexicographic order. From the default configuration on, each step moves forward cyclically by
about the golden section of its length. The step has no divisor in common with the length, so every place is visited
once. The visited places leave gaps of at most three lengths, none much larger than another (three-distance theorem: Sós
1958). As the step shares no divisor with the length, the last parameters of the order vary as well as the first ones;
halving the list repeatedly would leave the last ones at their first value for long.
"""

from functools import cached_property
from math import gcd, sqrt

import numpy as np

from autotune.search.base import PASSED_OVER, History, Proposer, Rows, unseen
from spaces import Space, SpaceError

_GOLDEN_SECTION = (sqrt(5) - 1) / 2
_WINDOW = 50


class ExhaustiveSampler(Proposer):
    """Proposes every valid configuration once; a search that ends early has covered all parts of the space.

    Raises:
        SpaceError: the valid configurations are too many to list.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        if not space.listable:
            lines = [f"{space.size} valid configurations are too many to try every one; take another sampler"]
            raise SpaceError(lines)

    @property
    def startup_trials(self) -> None:
        """None: no trial depends on measurements."""
        return

    def rank(self, history: History, rng: np.random.Generator) -> Rows:
        """Return the next configurations of the order."""
        del rng
        size = len(self._rows)
        # The proposed ones are among the first len(rows); a few are needed beyond them.
        count = min(size, len(history.rows) + PASSED_OVER)
        places = (self._first + np.arange(count, dtype=np.int64) * stride(size)) % size
        return unseen(self._rows[places], history.rows)

    @cached_property
    def _rows(self) -> Rows:
        return self.space.all_indices()

    @cached_property
    def _first(self) -> int:
        default = self.space.indices([self.space.default()])[0]
        return int(np.flatnonzero((self._rows == default).all(axis=1))[0])


def stride(size: int) -> int:
    """Return a number near the golden section of `size` that has no divisor in common with it.

    Among nearby numbers, choose the one whose steps stay even the longest: it has the smallest maximum of the quotients
    in its continued fraction. For the golden section itself all quotients are 1.
    """
    middle = round(size * _GOLDEN_SECTION)
    near = range(max(1, middle - _WINDOW), min(size, middle + _WINDOW) + 1)
    return min(
        (step for step in near if gcd(step, size) == 1),
        key=lambda step: (_greatest_quotient(size, step), abs(step - middle)),
    )


def _greatest_quotient(size: int, step: int) -> int:
    greatest = 1
    while step > 0:
        greatest, size, step = max(greatest, size // step), step, size % step
    return greatest
