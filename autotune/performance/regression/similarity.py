"""Similarity: how near machines are to one another, by their facts."""

from collections.abc import Sequence

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.records.measurement import Facts

# What two machines at random have between them: of numbers that is 2, for they are standardised.
_OTHER_WORD = 2.0
_VENDORS = ("gpu_vendor", "cpu_vendor")


def squared_distances(facts: Sequence[Facts]) -> FloatArray:
    """Return the squared distances, (m, m), of m machines by what is known of all of them.

    Numbers count by the logarithm, standardised; words (vendor, architecture) as equal or not, unless all differ.
    """
    shared = [name for name in facts[0] if all(name in one for one in facts)]
    numbers = [np.log(np.array([float(one[name]) for one in facts])) for name in shared if _is_size(name, facts)]
    numbers = [column for column in numbers if np.ptp(column) > 0.0]
    found = np.zeros((len(facts), len(facts)))
    if numbers:
        z = np.column_stack([(column - column.mean()) / column.std() for column in numbers])
        found += ((z[:, None, :] - z[None, :, :]) ** 2).mean(axis=-1)
    words = [np.array([str(one[name]) for one in facts]) for name in shared if isinstance(facts[0][name], str)]
    words = [column for column in words if 1 < len(set(column.tolist())) < len(facts)]
    if words:
        found += _OTHER_WORD * np.mean([column[:, None] != column[None, :] for column in words], axis=0)
    return found


def vendors(facts: Sequence[Facts]) -> tuple[str, ...]:
    """Return who made the processors that count: accelerators where there are any; "" where that is not known."""
    return tuple(next((str(one[name]) for name in _VENDORS if one.get(name)), "") for one in facts)


def _is_size(name: str, facts: Sequence[Facts]) -> bool:
    return all(
        isinstance(one[name], int | float) and not isinstance(one[name], bool) and float(one[name]) > 0.0
        for one in facts
    )
