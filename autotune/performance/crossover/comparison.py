"""Two machines compared: how many times as fast the first is at each case, and how sure that is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import combinations
from math import exp

import numpy as np

from autotune.performance.crossover.cases import Case, CaseTable
from autotune.performance.crossover.process import Process
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.prediction import Interval
from autotune.performance.regression.table import Places
from autotune.performance.run_times.blend import promised
from autotune.performance.run_times.novelty import limits

LEAST_OTHERS = 4
"""With fewer other machines that are left out in pairs, nobody knows how far such a ratio may be off.

What has the same hardware, on another number of nodes or by another build, is one of them.
"""

_ROUNDS = 300  # pairs of machines are left out at so many cases at most


class Answer(StrEnum):
    """Which machine is faster at a case."""

    FIRST = "first"
    SECOND = "second"
    NOT_KNOWN = "not known"


@dataclass(frozen=True)
class Ratio:
    """How many times as good the first machine is at a case as the second; of what was `measured` on both, so.

    Without an interval nobody knows, for the reason `why`.
    """

    case: Case
    speed: Interval | None
    measured: bool = False
    why: str = ""

    @property
    def answer(self) -> Answer:
        """Which machine is faster: none where the interval holds 1."""
        if self.speed is None or self.speed.low <= 1.0 <= self.speed.high:
            return Answer.NOT_KNOWN
        return Answer.FIRST if self.speed.low > 1.0 else Answer.SECOND


@dataclass(frozen=True)
class Comparison:
    """Ratios of two machines by a table in which both are; the process is fitted to what was measured of both, too."""

    table: CaseTable
    first: int
    second: int
    process: Process

    @classmethod
    def of(cls, table: CaseTable, first: str, second: str) -> "Comparison":
        """Compare two machines of a table."""
        process = Process.fitted(table, np.random.default_rng(0))
        return cls(table, table.machines.index(first), table.machines.index(second), process)

    @cached_property
    def pairs(self) -> list[tuple[int, int]]:
        """The pairs of other machines, none of the hardware of the two, that something the same was measured on."""
        known, of = self.process.table, self.table.hardware
        asked = {of[machine] for machine in self._both}
        cases = {
            machine: set(known.case[known.machine == machine].tolist())
            for machine in np.unique(known.machine).tolist()
            if of[machine] not in asked
        }
        both = combinations(cases, 2)
        return [(one, other) for one, other in both if of[one] != of[other] and cases[one] & cases[other]]

    @property
    def others(self) -> int:
        """How many other machines pairs are of."""
        return len({self.table.hardware[machine] for pair in self.pairs for machine in pair})

    @property
    def _both(self) -> tuple[int, int]:
        return (self.first, self.second)

    def ratios(self, cases: Sequence[int]) -> Iterator[Ratio]:
        """Yield the ratio of each of the cases, which are given by their places in the table."""
        factors: dict[object, float | None] = {}
        for place in cases:
            case = self.table.cases[place]
            costs = [self.table.cost(machine, place) for machine in self._both]
            if costs[0] is not None and costs[1] is not None:
                ratio = exp(costs[1] - costs[0])
                yield Ratio(case, Interval(ratio, ratio, ratio, 1.0), measured=True)
                continue
            if self.others < LEAST_OTHERS:
                why = f"{LEAST_OTHERS} other machines must be known to tell the error, and {self.others} are"
                yield Ratio(case, None, why=why)
                continue
            if why := self._unlike(place):
                yield Ratio(case, None, why=why)
                continue
            novelty = self._novelty(place)
            if novelty not in factors:
                factors[novelty] = self._factor(novelty)
            factor = factors[novelty]
            if factor is None:
                yield Ratio(case, None, why="no pair of other machines ran the same")
                continue
            expected = self.process.difference(self.second, self.first, place)
            wide = factor * expected.deviation
            ends = (exp(expected.mean - wide), exp(expected.mean + wide))
            yield Ratio(case, Interval(exp(expected.mean), *ends, promised(self.others)))

    def _unlike(self, place: int) -> str:
        """Say in which number a case lies far outside of what was measured; empty if in none."""
        known = [self.table.cases[number].facts for number in np.unique(self.process.table.case).tolist()]
        for name, value in self.table.cases[place].facts.items():
            numbers = [facts[name] for facts in known if name in facts]
            if (
                isinstance(value, str | bool)
                or any(isinstance(number, str | bool) for number in numbers)
                or not numbers
            ):
                continue
            low, high = limits(np.array(numbers, dtype=float))
            if not low <= value <= high:
                return f"{name} {value:.6g} is more than a factor of two outside of what was measured"
        return ""

    def _novelty(self, case: int) -> "_Novelty":
        """Return how new the two machines, and a case on each of them, are to what was measured."""
        known = self.process.table
        kinds = [of.kind for of in self.table.cases]
        of_machines = [known.case[known.machine == machine] for machine in self._both]
        measured = [rows.tolist() for rows in (known.case, *of_machines) if len(rows)]
        new = sorted(len(rows) == 0 for rows in of_machines)
        return _Novelty(
            machines=(new[0], new[1]),
            anywhere=case not in known.case,
            whole_kind=any(all(kinds[row] != kinds[case] for row in rows) for rows in measured),
        )

    def _factor(self, novelty: "_Novelty") -> float | None:
        """Return by how many deviations pairs of other machines were off that were left out as the asked one is new."""
        known = self.process.table
        numbers = {kind: number for number, kind in enumerate(dict.fromkeys(case.kind for case in known.cases))}
        groups = np.arange(len(known.cases))
        if novelty.whole_kind:
            groups = np.array([numbers[case.kind] for case in known.cases], dtype=np.intp)
        # Where one of the two is new, each of a pair is, in turn.
        is_lopsided = novelty.machines[0] != novelty.machines[1]
        pairs = [*self.pairs, *((other, one) for one, other in self.pairs if is_lopsided)]
        rounds: list[tuple[tuple[int, int], int | None]] = [(pair, None) for pair in pairs]
        if not all(novelty.machines) or novelty.anywhere:
            every = [(pair, group) for pair in pairs for group in np.unique(groups[known.case]).tolist()]
            rounds = [every[at] for at in np.random.default_rng(0).permutation(len(every))[:_ROUNDS]]
        off: list[FloatArray] = []
        judged: set[frozenset[int]] = set()
        for pair, group in rounds:
            cases = np.arange(len(groups)) if group is None else np.flatnonzero(groups == group)
            errors = np.abs(self.process.errors(*pair, novelty.hidden(known, pair, cases), cases))
            if len(errors):
                off.append(errors)
                judged.add(frozenset(pair))
        # The asked pair is one more than those that were left out, at however many cases.
        return _quantile(off, promised(self.others) * (len(judged) + 1) / len(judged)) if off else None


@dataclass(frozen=True)
class _Novelty:
    """Whether each machine is new, whether a case is new `anywhere`, and whether its `whole_kind` is new there.

    If one of the two machines is new, it is the second here.
    """

    machines: tuple[bool, bool]
    anywhere: bool
    whole_kind: bool

    def hidden(self, known: CaseTable, pair: tuple[int, int], cases: Places) -> Places:
        """Return the rows to leave out of a pair of machines to predict it at some cases."""
        of_cases = np.isin(known.case, cases)
        chosen = of_cases & (np.isin(known.machine, pair) | self.anywhere)
        for machine, is_new in zip(pair, self.machines, strict=True):
            chosen |= np.isin(known.machine, known.beside(machine)) & is_new
        return np.flatnonzero(chosen)


def _quantile(off: Sequence[FloatArray], share: float) -> float:
    """Return what a share of errors is within, the greatest for one above 1, where each round counts the same."""
    values = np.concatenate(off)
    weights = np.concatenate([np.full(len(errors), 1.0 / len(errors)) for errors in off])
    order = np.argsort(values)
    reached = np.cumsum(weights[order]) / len(off)
    return float(values[order][min(len(values) - 1, int(np.searchsorted(reached, min(1.0, share) - 1e-9)))])
