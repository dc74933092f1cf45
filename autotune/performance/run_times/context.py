"""The context of a run: what words say of the machine and of the program's installation, and what comes nearest to it.

A word that was never seen says nothing to a model. In its place stand the words of the known combinations that share
most with what is asked; the predictions for each are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.table import Places, Table, Words

Combination = tuple[object, ...]


@dataclass(frozen=True)
class Replaced:
    """A table without unseen words: its rows stand for those at `places`, (m,), of the table asked, by `weights`."""

    table: Table
    places: Places
    weights: FloatArray

    def average(self, values: FloatArray, count: int) -> FloatArray:
        """Return the averages, (count, k), of values, (m, k), for the rows that they stand for."""
        if len(values) == count:
            return values
        found = np.zeros((count, values.shape[1]))
        np.add.at(found, self.places, values * self.weights[:, None])
        return found


@dataclass(frozen=True)
class Context:
    """The words called `names` that were seen together."""

    names: tuple[str, ...]
    known: tuple[Combination, ...]

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> "Context":
        """Return the combinations of a table."""
        there = tuple(name for name in names if name in table.words)
        return cls(there, tuple(dict.fromkeys(zip(*(table.words[name] for name in there), strict=True))))

    def unseen(self, asked: Combination) -> tuple[str, ...]:
        """Return the names of the words that were never seen."""
        seen = [{known[place] for known in self.known} for place in range(len(self.names))]
        return tuple(
            name for name, word, words in zip(self.names, asked, seen, strict=True) if words and word not in words
        )

    def nearest(self, asked: Combination) -> tuple[Combination, ...]:
        """Return the known combinations that share most words with what is asked."""
        shared = [sum(a == b for a, b in zip(asked, known, strict=True)) for known in self.known]
        return tuple(known for known, count in zip(self.known, shared, strict=True) if count == max(shared, default=0))

    def stand_ins(self, asked: Combination) -> tuple[Combination, ...]:
        """Return what is to be predicted instead: seen words stay, others become those of the nearest."""
        unseen = self.unseen(asked)
        if not unseen:
            return (asked,)
        others = (
            tuple(b if name in unseen else a for name, a, b in zip(self.names, asked, known, strict=True))
            for known in self.nearest(asked)
        )
        return tuple(dict.fromkeys(others))

    def replaced(self, table: Table) -> Replaced:
        """Return a table with words that were seen only."""
        # What was known of every machine so far need not be known of this one.
        unset = np.full(len(table), None, dtype=object)
        codes, combinations = _distinct([table.words.get(name, unset) for name in self.names], len(table))
        instead = [self.stand_ins(asked) for asked in combinations]
        if all(found == (asked,) for asked, found in zip(combinations, instead, strict=True)):
            return Replaced(table, np.arange(len(table)), np.ones(len(table)))
        counts = np.array([len(found) for found in instead])[codes]
        places = np.repeat(np.arange(len(table)), counts)
        turns = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        new = table.at(places)
        for at, name in enumerate(self.names):
            words = np.full((len(instead), max(map(len, instead))), None, dtype=object)
            for row, found in enumerate(instead):
                words[row, : len(found)] = [one[at] for one in found]
            new = new.with_word(name, words[codes[places], turns])
        return Replaced(new, places, 1.0 / counts[places])


def _distinct(columns: Sequence[Words], count: int) -> tuple[Places, list[Combination]]:
    """Return which of the distinct combinations each row is, (n,), and those."""
    codes = np.zeros(count, dtype=np.intp)
    for column in columns:
        if (column == column[0]).all():
            continue
        places: dict[object, int] = {}
        own = np.array([places.setdefault(word, len(places)) for word in column], dtype=np.intp)
        codes = np.unique(codes * len(places) + own, return_inverse=True)[1].reshape(-1)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes.reshape(-1), [tuple(column[row] for column in columns) for row in first]
