"""Similarity: how near machines are to one another, by their facts."""

from collections.abc import Sequence

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.records.measurement import Facts

# The squared distance of two machines at random: of numbers it is 2, for they are standardised.
_OTHER_WORD = 2.0
_VENDORS = ("gpu_vendor", "cpu_vendor")


def squared_distances(facts: Sequence[Facts]) -> FloatArray:
    """Return the squared distances, (m, m), of m machines by the facts that all of them have.

    Numbers count by the logarithm, standardised; words (vendor, architecture) as equal or not, unless all differ.
    """
    shared = [name for name in facts[0] if all(name in machine for machine in facts)]
    numbers = [
        np.log(np.array([float(machine[name]) for machine in facts])) for name in shared if _is_size(name, facts)
    ]
    numbers = [column for column in numbers if np.ptp(column) > 0.0]
    distances = np.zeros((len(facts), len(facts)))
    if numbers:
        z = np.column_stack([(column - column.mean()) / column.std() for column in numbers])
        distances += ((z[:, None, :] - z[None, :, :]) ** 2).mean(axis=-1)
    words = [np.array([str(machine[name]) for machine in facts]) for name in shared if isinstance(facts[0][name], str)]
    words = [column for column in words if 1 < len(set(column.tolist())) < len(facts)]
    if words:
        distances += _OTHER_WORD * np.mean([column[:, None] != column[None, :] for column in words], axis=0)
    return distances


def vendors(facts: Sequence[Facts]) -> tuple[str, ...]:
    """Return the vendor of each machine's accelerators, or of its processors if it has none; "" where unknown."""
    return tuple(next((str(machine[name]) for name in _VENDORS if machine.get(name)), "") for machine in facts)


def _is_size(name: str, facts: Sequence[Facts]) -> bool:
    return all(
        isinstance(machine[name], int | float) and not isinstance(machine[name], bool) and float(machine[name]) > 0.0
        for machine in facts
    )
