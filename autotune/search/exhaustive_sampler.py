"""Every valid configuration once, in an order whose every beginning is spread over the space.

The valid set is a list in lexicographic order. From the default configuration on, each step goes forward by about the
golden section of its length, round and round: by a number of places that has no divisor in common with the length, so
that every place is met once. The places met so far leave gaps of at most three lengths, none much larger than another
(three-distance theorem: Sós 1958), and since the step shares no divisor with the length, the parameters at the end of
the list vary as well as those at its beginning. (Halving the list again and again would leave those at their first
value for long.)
"""

from functools import cached_property
from math import gcd, sqrt

import numpy as np

from autotune.search.base import PASSED_OVER, History, Proposer, Rows, unseen
from spaces import Space, SpaceError

_GOLDEN_SECTION = (sqrt(5) - 1) / 2
_WINDOW = 50


class ExhaustiveSampler(Proposer):
    """Proposes every valid configuration once; an early end has seen something of every part of the space.

    Raises:
        SpaceError: there are too many to list.
    """

    def __init__(self, space: Space) -> None:
        super().__init__(space)
        if not space.listable:
            lines = [f"{space.size} valid configurations are too many to try every one; take another sampler"]
            raise SpaceError(lines)

    @property
    def blind(self) -> None:
        """None: no trial depends on measurements."""
        return

    def ranked(self, history: History, rng: np.random.Generator) -> Rows:
        """Return the next configurations of the order."""
        del rng
        size = len(self._rows)
        # At most so many of the first have been proposed, and a few are wanted beyond them.
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
    """Return a number near the golden section of `size`, with no divisor in common with it.

    Of those near by it is the one whose steps stay even the longest: the greatest quotient of its continued fraction is
    the least (of the golden section itself all are 1).
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
