"""Hyperband: how far each trial of a study is trained before the better ones go on.

Li, Jamieson, DeSalvo, Rostamizadeh & Talwalkar, "Hyperband: a novel bandit-based approach to hyperparameter
optimization", JMLR 18 (2018), algorithm 1: a bracket starts many trials with few steps, another one few with many, and
in each a share of 1/eta goes on at every rung. A rung is decided when all of its trials are there; only a worker that
would have nothing to do takes the best so far before that, by the rule of ASHA (Li et al., "A system for massively
parallel hyperparameter tuning", MLSys 2020). Steps and sizes are computed with integers: a logarithm of floats loses
brackets.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import inf


@dataclass(frozen=True)
class Bracket:
    """A bracket: `sizes` is how many trials each rung has, `steps` how far a rung trains them, in steps in all."""

    sizes: tuple[int, ...]
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Entry:
    """A trial of a bracket.

    `values` are those at the rungs that it has reached, lower is better; it is `busy` on the way to the next one, or
    `out`: failed, or nothing is left to train. One that has ended by itself has a value at every rung; it has gone on
    from the first `passed` of them, and takes a place beyond these only where it is among the best.
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

    No trial is trained for more than `max_steps` steps, none is judged before `min_steps`.
    """
    highest = 0
    while min_steps * eta ** (highest + 1) <= max_steps:
        highest += 1
    return tuple(_bracket(_ceil((highest + 1) * eta**s, s + 1), s, max_steps, eta) for s in range(highest, -1, -1))


def planned(trials: int, max_steps: int, min_steps: int, eta: int) -> tuple[Bracket, ...]:
    """Return brackets for `trials` trials: whole iterations, then one in the same proportions for the rest."""
    iteration = brackets(max_steps, min_steps, eta)
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


def halving(trials: int, max_steps: int, min_steps: int, eta: int) -> Bracket:
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

    `full`: no more will come. `eager` is ASHA's rule: never wait for a rung to be complete.
    """

    bracket: Bracket
    entries: Sequence[Entry]
    eta: int
    full: bool
    eager: bool = False

    def promoted(self, *, idle: bool) -> Entry | None:
        """Return the trial that should go on to its next rung; `idle` says that a worker has nothing else to do."""
        for rung in range(len(self.bracket.sizes) - 2, -1, -1):
            chosen = self._chosen(rung, idle=idle)
            if chosen is not None:
                return chosen
        return None

    def is_over(self, entry: Entry) -> bool:
        """Whether a trial is not going to be trained any further."""
        if entry.out or entry.level == len(self.bracket.sizes):
            return True
        if entry.busy or entry.level == 0:
            return False
        rung = entry.level - 1
        return self._closed[rung] and entry not in self._waiting(rung)

    def _chosen(self, rung: int, *, idle: bool) -> Entry | None:
        if self._closed[rung] and not self.eager:
            return next(iter(self._waiting(rung)), None)
        if not (idle or self.eager):
            return None
        ranked = self._ranked(rung)
        share = max(len(ranked) // self.eta, 1 if self._closed[rung] else 0)
        return next((entry for entry in ranked[:share] if not self._has_gone_on(entry, rung) and not entry.out), None)

    def _waiting(self, rung: int) -> list[Entry]:
        """Return the trials that a closed rung promotes and that have not continued yet."""
        gone = sum(self._has_gone_on(entry, rung) for entry in self.entries)
        size = self.bracket.sizes[rung + 1]
        if self.eager:
            size = max(1, len(self._ranked(rung)) // self.eta)
        # A trial that has nothing left to train takes a place without taking time.
        left = [entry for entry in self._ranked(rung) if not self._has_gone_on(entry, rung)][: max(0, size - gone)]
        return [entry for entry in left if not entry.out]

    def _ranked(self, rung: int) -> list[Entry]:
        reached = [entry for entry in self.entries if entry.level > rung and entry.values[rung] < inf]
        return sorted(reached, key=lambda entry: (entry.values[rung], entry.number))

    def _has_gone_on(self, entry: Entry, rung: int) -> bool:
        if entry.passed is not None:
            return entry.passed > rung
        return entry.level > rung + 1 or (entry.level == rung + 1 and entry.busy)

    @cached_property
    def _closed(self) -> tuple[bool, ...]:
        """Whether, rung by rung, no other trial will reach it."""
        closed: list[bool] = []
        for rung in range(len(self.bracket.sizes)):
            before = self.full if rung == 0 else closed[-1] and not self._waiting(rung - 1)
            here = all(entry.level != rung or entry.out or not self._is_on_the_way(entry) for entry in self.entries)
            closed.append(before and here)
        return tuple(closed)

    def _is_on_the_way(self, entry: Entry) -> bool:
        return entry.busy or entry.level == 0
