"""Similarity of machines, by their facts."""

from collections.abc import Sequence

import numpy as np

from autotune.records.measurement import Facts
from spaces.expressions.quantities import FloatArray

# The squared distance of different words: that of two random standardised numbers is 2 on average.
_OTHER_WORD = 2.0


def squared_distances(facts: Sequence[Facts]) -> FloatArray:
    """Return the squared distances, (m, m), between m machines by the facts that all of them have.

    Numbers are compared by standardised logarithms, words (vendor, architecture) by equality, unless all differ.
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


def groups_sharing_word(known: Sequence[Facts], facts: Facts) -> list[tuple[int, ...]]:
    """Return groups of known machines, by index, that share a word (vendor, architecture) with the given machine.

    Words that all known machines have are ignored; several words of the same machines make one group.
    """
    words = [(name, word) for name, word in facts.items() if isinstance(word, str)]
    groups = [tuple(at for at, machine in enumerate(known) if machine.get(name) == word) for name, word in words]
    return list(dict.fromkeys(group for group in groups if 0 < len(group) < len(known)))


def fact_columns(facts: Sequence[Facts]) -> FloatArray:
    """Return the facts that all m machines have as numbers, (m, k): logarithms of sizes, and a column for each word."""
    shared = [name for name in facts[0] if all(name in machine for machine in facts)]
    columns = [np.log([float(machine[name]) for machine in facts]) for name in shared if _is_size(name, facts)]
    for name in shared:
        words = [machine[name] for machine in facts]
        if all(isinstance(word, str) for word in words):
            columns += [np.array([float(word == each) for word in words]) for each in dict.fromkeys(words)]
    varied = [column for column in columns if np.ptp(column) > 0.0]
    return np.column_stack(varied) if varied else np.zeros((len(facts), 0))


def _is_size(name: str, facts: Sequence[Facts]) -> bool:
    return all(
        isinstance(machine[name], int | float) and not isinstance(machine[name], bool) and float(machine[name]) > 0.0
        for machine in facts
    )
