"""Hyperband: how far each trial of a study is trained before only the better ones continue.

Algorithm 1 of Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar, "Hyperband: a novel bandit-based approach to
hyperparameter optimization", JMLR 18 (2018): the first bracket starts many trials with few steps, the last one few
trials with many steps, and in each the best 1/eta of the trials continue at every rung. A rung is decided when all of
its trials have reached it. Only an idle worker promotes the best trial so far before that, by the rule of ASHA (Li et
al., "A system for massively parallel hyperparameter tuning", MLSys 2020).

Steps and sizes are computed with integers: the logarithm of a float loses brackets by rounding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf


@dataclass(frozen=True)
class Bracket:
    """A bracket of Hyperband.

    Args:
        sizes: The number of trials of each rung.
        steps: The step to which each rung trains its trials, counted from their start.
    """

    sizes: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A trial of a bracket.

    Args:
        number: The trial.
        values: Its values at the rungs that it has reached; lower is better.
        busy: It is being trained to the next rung.
        out: It failed, or nothing is left to train.
        passed: Of a training that ended by itself: the rungs whose steps it really made. It has a value at every rung,
            and counts beyond these only where it is among the best.
    """

    number: int
    values: tuple[float, ...] = ()
    busy: bool = False
    out: bool = False
    passed: int | None = None

    @property
    def level(self) -> int:
        """How many rungs it has reached."""
        return len(self.values)


def brackets(max_steps: int, min_steps: int, eta: int) -> tuple[Bracket, ...]:
    """Return the brackets of one iteration of Hyperband, the one with most trials first.

    Args:
        max_steps: The most steps that a trial is trained.
        min_steps: The fewest steps after which a trial is judged.
        eta: One trial in `eta` continues at each rung.
    """
    highest = 0
    while min_steps * eta ** (highest + 1) <= max_steps:
        highest += 1
    return tuple(_bracket(_ceil((highest + 1) * eta**s, s + 1), s, max_steps, eta) for s in range(highest, -1, -1))


def plan_brackets(trials: int, max_steps: int, min_steps: int, eta: int) -> tuple[Bracket, ...]:
    """Return brackets for `trials` trials: whole rounds, then a smaller one in the same proportions.

    A round is the bracket with most trials, twice, and the next one; the others cost as much and find less.
    """
    first, *others = brackets(max_steps, min_steps, eta)
    iteration = (first, first, *others[:1])
    whole = sum(bracket.sizes[0] for bracket in iteration)
    left = trials % whole
    shares = [left * bracket.sizes[0] / whole for bracket in iteration]
    sizes = [int(share) for share in shares]
    by_rest = sorted(range(len(shares)), key=lambda position: (sizes[position] - shares[position], position))
    for position in by_rest[: left - sum(sizes)]:
        sizes[position] += 1
    rest = (
        _bracket(size, len(bracket.steps) - 1, max_steps, eta)
        for size, bracket in zip(sizes, iteration, strict=True)
        if size
    )
    return (*(iteration * (trials // whole)), *rest)


def halving_bracket(trials: int, max_steps: int, min_steps: int, eta: int) -> Bracket:
    """Return one bracket for all trials: successive halving from the lowest rung."""
    return _bracket(trials, len(brackets(max_steps, min_steps, eta)) - 1, max_steps, eta)


def _bracket(trials: int, rungs: int, max_steps: int, eta: int) -> Bracket:
    sizes = tuple(max(1, trials // eta**rung) for rung in range(rungs + 1))
    steps = tuple(max(1, (2 * max_steps + eta ** (rungs - r)) // (2 * eta ** (rungs - r))) for r in range(rungs + 1))
    return Bracket(sizes, steps)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


@dataclass(frozen=True)
class Race:
    """A bracket with the trials that it has so far.

    Args:
        bracket: The bracket.
        entries: Its trials.
        eta: One trial in `eta` continues at each rung.
        full: No more trials will be added.
        eager: Promote by ASHA's rule, without waiting for a rung to be complete.
    """

    bracket: Bracket
    entries: Sequence[Entry]
    eta: int
    full: bool
    eager: bool = False

    def next_promotion(self, *, idle: bool) -> Entry | None:
        """Return the trial to train to its next rung, if any; with `idle`, a worker has nothing else to do."""
        for rung in range(len(self.bracket.sizes) - 2, -1, -1):
            chosen = self._choose_entry(rung, idle=idle)
            if chosen is not None:
                return chosen
        return None

    def is_over(self, entry: Entry) -> bool:
        """Whether a trial will not be trained any further."""
        if entry.out or entry.level == len(self.bracket.sizes):
            return True
        if entry.busy or entry.level == 0:
            return False
        rung = entry.level - 1
        return self._closed[rung] and entry not in self._waiting(rung)

    def _choose_entry(self, rung: int, *, idle: bool) -> Entry | None:
        if self._closed[rung] and not self.eager:
            return next(iter(self._waiting(rung)), None)
        if not (idle or self.eager):
            return None
        ranked = self._rank(rung)
        share = max(len(ranked) // self.eta, 1 if self._closed[rung] else 0)
        return next((entry for entry in ranked[:share] if not self._has_continued(entry, rung) and not entry.out), None)

    def _waiting(self, rung: int) -> list[Entry]:
        """Return the trials that a closed rung promotes and that have not continued yet."""
        gone = sum(self._has_continued(entry, rung) for entry in self.entries)
        size = self.bracket.sizes[rung + 1]
        if self.eager:
            size = max(1, len(self._rank(rung)) // self.eta)
        # A trial that has nothing left to train counts among those promoted, though it costs no time.
        left = [entry for entry in self._rank(rung) if not self._has_continued(entry, rung)][: max(0, size - gone)]
        return [entry for entry in left if not entry.out]

    def _rank(self, rung: int) -> list[Entry]:
        reached = [entry for entry in self.entries if entry.level > rung and entry.values[rung] < inf]
        return sorted(reached, key=lambda entry: (entry.values[rung], entry.number))

    def _has_continued(self, entry: Entry, rung: int) -> bool:
        if entry.passed is not None:
            return entry.passed > rung
        return entry.level > rung + 1 or (entry.level == rung + 1 and entry.busy)

    @cached_property
    def _closed(self) -> tuple[bool, ...]:
        """For each rung, whether no other trial will reach it."""
        closed: list[bool] = []
        for rung in range(len(self.bracket.sizes)):
            before = self.full if rung == 0 else closed[-1] and not self._waiting(rung - 1)
            here = all(entry.level != rung or entry.out or not self._may_reach_next(entry) for entry in self.entries)
            closed.append(before and here)
        return tuple(closed)

    def _may_reach_next(self, entry: Entry) -> bool:
        return entry.busy or entry.level == 0
