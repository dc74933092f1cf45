"""The context of a run: the words of its machine and of the program's installation.

A model cannot use a word that it has not seen. Such words are replaced by those of the nearest known combinations,
which share most words with the given one, and the predictions for these are averaged.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from autotune.performance.regression.table import Places, Table, Words
from autotune.records.measurement import INSTALLATION, Setting
from spaces.expressions.quantities import FloatArray

Combination = tuple[object, ...]


@dataclass(frozen=True)
class Replaced:
    """A table without unseen words, whose rows replace those at `places`, (m,), of a given table, with `weights`."""

    table: Table
    places: Places
    weights: FloatArray

    def average(self, values: FloatArray, count: int) -> FloatArray:
        """Return the averages, (count, k), of values, (m, k), for the rows of the given table."""
        if len(values) == count:
            return values
        averages = np.zeros((count, values.shape[1]))
        np.add.at(averages, self.places, values * self.weights[:, None])
        return averages


@dataclass(frozen=True)
class Context:
    """The combinations of words, in the columns `names`, that were seen."""

    names: tuple[str, ...]
    known: tuple[Combination, ...]

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> "Context":
        """Return the combinations of a table."""
        there = tuple(name for name in names if name in table.words)
        return cls(there, tuple(dict.fromkeys(zip(*(table.words[name] for name in there), strict=True))))

    def unseen(self, combination: Combination) -> tuple[str, ...]:
        """Return the names of the columns whose word was never seen."""
        seen = [{known[index] for known in self.known} for index in range(len(self.names))]
        return tuple(
            name for name, word, words in zip(self.names, combination, seen, strict=True) if words and word not in words
        )

    def nearest(self, combination: Combination) -> tuple[Combination, ...]:
        """Return the known combinations that share the most words with a combination."""
        shared = [sum(a == b for a, b in zip(combination, known, strict=True)) for known in self.known]
        return tuple(known for known, count in zip(self.known, shared, strict=True) if count == max(shared, default=0))

    def stand_ins(self, combination: Combination) -> tuple[Combination, ...]:
        """Return the combinations to predict instead: seen words stay, unseen ones become those of the nearest."""
        unseen = self.unseen(combination)
        if not unseen:
            return (combination,)
        others = (
            tuple(b if name in unseen else a for name, a, b in zip(self.names, combination, known, strict=True))
            for known in self.nearest(combination)
        )
        return tuple(dict.fromkeys(others))

    def replace_unseen(self, table: Table) -> Replaced:
        """Return a table with seen words only."""
        # The setting may lack a fact that all known machines have.
        unset = np.full(len(table), None, dtype=object)
        codes, combinations = _distinct([table.words.get(name, unset) for name in self.names], len(table))
        instead = [self.stand_ins(combination) for combination in combinations]
        if all(stand_ins == (combination,) for combination, stand_ins in zip(combinations, instead, strict=True)):
            return Replaced(table, np.arange(len(table)), np.ones(len(table)))
        counts = np.array([len(stand_ins) for stand_ins in instead])[codes]
        places = np.repeat(np.arange(len(table)), counts)
        turns = np.arange(len(places)) - np.repeat(np.cumsum(counts) - counts, counts)
        new = table.at(places)
        for at, name in enumerate(self.names):
            words = np.full((len(instead), max(map(len, instead))), None, dtype=object)
            for row, stand_ins in enumerate(instead):
                words[row, : len(stand_ins)] = [combination[at] for combination in stand_ins]
            new = new.with_word(name, words[codes[places], turns])
        return Replaced(new, places, 1.0 / counts[places])


def _distinct(columns: Sequence[Words], count: int) -> tuple[Places, list[Combination]]:
    """Return the index of each row's combination, (n,), and the distinct combinations."""
    codes = np.zeros(count, dtype=np.intp)
    for column in columns:
        if (column == column[0]).all():
            continue
        numbers: dict[object, int] = {}
        own = np.array([numbers.setdefault(word, len(numbers)) for word in column], dtype=np.intp)
        codes = np.unique(codes * len(numbers) + own, return_inverse=True)[1].reshape(-1)
    _, first, codes = np.unique(codes, return_index=True, return_inverse=True)
    return codes.reshape(-1), [tuple(column[row] for column in columns) for row in first]


def word_of(setting: Setting, name: str) -> object:
    """Return a setting's word for a column; None without one."""
    facts = {"machine": setting.machine, **setting.machine_facts, **setting.workload_facts}
    value = facts.get(name)
    return None if value is None else str(value)


def in_words(names: tuple[str, ...], nearest: tuple[tuple[object, ...], ...]) -> str:
    """Return combinations of the columns `names` in words: the machines with their installations."""
    shown = [name for name in names if name == "machine" or name in INSTALLATION]
    texts = [
        " ".join(str(combination[names.index(name)]) for name in shown if combination[names.index(name)])
        for combination in nearest
    ]
    return " or ".join(dict.fromkeys(texts))
