"""Run duets: both runs of a round at the same time, on equal halves of the cores, which are swapped in the next round.

One run is of the first side. If there are several other sides, they take turns (an incomplete block design).

A disturbance hits both runs, so most of it leaves their ratio unchanged (Bulej et al., Duet Benchmarking: Improving
Measurement Accuracy in the Cloud, ICPE 2020). The two runs are stored together, and if one must be repeated, both are.
When one run has ended, the other runs on alone, and later disturbances hit only that one. The verdict therefore states
the share of the time that both ran, and a run that lost more time to other processes than its partner does not count.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from statistics import median
from typing import Self

from autotune.comparison.round_table import RoundTable
from autotune.comparison.rounds import ComparisonRounds
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.errors import CannotRunHereError
from autotune.execution.segments import join_segments
from autotune.records.outcome import Outcome
from autotune.records.series import Series

# If two runs share less than this part of the shorter run's time, they ran one after the other in effect.
_LEAST_SHARED = 0.5
# Allow a few duets without overlap: the first start of a program takes longer than later ones.
_MANY_APART = 3


class NoDuetError(CannotRunHereError):
    """Pairs cannot be made side by side, for the reason `why`; they may work in turns."""

    def __init__(self, why: str, what: str) -> None:
        """Make an error with the message `what`."""
        super().__init__(what)
        self.why = why


@dataclass(frozen=True)
class DuetTable(RoundTable):
    """The duets so far; two runs that hardly overlapped do not count as a pair."""

    def overlap(self) -> float | None:
        """Return the share of the longer run's time in which both ran, in the median duet; None without duets."""
        duets = [self._outcomes(number, 0, 1) for number in self._rounds_with_both(0, 1)]
        shares = [shared_s(*both) / max(map(_duration_s, both)) for both in duets]
        return median(shares) if shares else None

    @property
    def apart(self) -> int:
        """How many duets do not count because their runs hardly overlapped."""
        return sum(self.count_unpaired(0, other) for other in range(1, len(self.sides)))

    @property
    def is_too_short(self) -> bool:
        """Whether so many duets hardly overlapped that more of them are no use."""
        return self.apart > _MANY_APART + sum(len(self.pairs(0, other)) for other in range(1, len(self.sides)))

    def side_values(self) -> list[tuple[int, int, float]]:
        """Return (side, round, value) of all sides but the first, as ratios to the first side times its median.

        The ratio removes the disturbances that both runs of a duet shared, so no effect of the round is left: the
        round is always 0.
        """
        pairs = [(side, *pair) for side in range(1, len(self.sides)) for pair in self.pairs(0, side)]
        usual = median(beside for _, beside, _ in pairs) if pairs else 1.0
        return [(side, 0, value * usual / beside) for side, beside, value in pairs]

    def _rounds_with_both(self, first: int, second: int) -> list[int]:
        numbers = super()._rounds_with_both(first, second)
        return [number for number in numbers if _overlaps(*self._outcomes(number, first, second))]

    def _outcomes(self, number: int, first: int, second: int) -> tuple[Outcome, Outcome]:
        return self.runs[number, first].outcome, self.runs[number, second].outcome


def shared_s(first: Outcome, second: Outcome) -> float:
    """Return the seconds that two runs ran at the same time; if their starts are unknown, the shorter run's time."""
    shorter_s = min(_duration_s(first), _duration_s(second))
    begins = [float(at) for one in (first, second) if (at := one.conditions.get("began_at")) is not None]
    if len(begins) < 2:
        return shorter_s
    until = min(at + _duration_s(one) for at, one in zip(begins, (first, second), strict=True))
    return min(max(0.0, until - max(begins)), shorter_s)


def _overlaps(first: Outcome, second: Outcome) -> bool:
    return shared_s(first, second) >= _LEAST_SHARED * min(_duration_s(first), _duration_s(second))


def _duration_s(outcome: Outcome) -> float:
    return outcome.usage.elapsed_s


@dataclass(frozen=True)
class Duets(ComparisonRounds):
    """Rounds of two runs at the same time: of the first side, and of the others in turn.

    Attributes:
        replaceable: Whether pairs in turns can replace these; then a side that fails often is an error.
    """

    replaceable: bool = False

    @classmethod
    def of(cls, rounds: ComparisonRounds, series: Series, *, replaceable: bool = False) -> Self:
        """Return duets of the sides of interleaved `rounds`."""
        return cls(**{**vars(rounds), "series": series, "over_nodes": False, "replaceable": replaceable})

    def table(self) -> DuetTable:
        """Return the stored runs of this series."""
        return DuetTable(**vars(super().table()))

    @property
    def _runs_at_once(self) -> int:
        return 2

    @property
    def _in_pairs(self) -> bool:
        return True

    @property
    def _others(self) -> int:
        """How many sides are compared with the first one."""
        return len(self.sides) - 1

    def _order(self, number: int) -> list[int]:
        return [side for side in super()._order(number) if side in {0, 1 + number % self._others}]

    def _slots(self, rounds: int) -> list[tuple[int, int]]:
        """Return the slots of `rounds` duets for each other side.

        Skip duets with a single stored run: their second run would not overlap with it.
        """
        ran = [number for number, _ in self.table().runs]
        half = {number for number in ran if ran.count(number) == 1}
        numbers = islice((number for number in count() if number not in half), rounds * self._others)
        return [(number, side) for number in numbers for side in self._order(number)]

    def _run_slots(self, slots: Sequence[tuple[int, int]], rounds: int) -> DuetTable:
        table = self.table()
        todo = [slot for slot in slots if slot not in table.runs]
        while todo := self._without_unreliable(todo, table):
            if not self.manager.gate.at_most(2):
                self.manager.check(idle=True)
            slots, todo = todo[:2], todo[2:]
            table = self._run_duet(slots, table, todo, (self.most or rounds) * self._others)
            self.check(table)
        return table

    def _run_duet(
        self, slots: Sequence[tuple[int, int]], table: DuetTable, todo: Sequence[tuple[int, int]], budget: int
    ) -> DuetTable:
        """Run a duet, repeat it while a run must be repeated, and store both runs together."""
        planned = [self._plan(slot, table) for slot in slots]
        while True:
            begun = self._start_duet([self._put_on_half(one, slot) for one, slot in zip(planned, slots, strict=True)])
            playing = list(zip(slots, begun, strict=True))
            ended = self.manager.finish_together(self._wait_for_both(playing, table, todo, budget))
            if not any(run.outcome.retryable for run in ended):
                break
            if aside := [(run, stored) for run, stored in zip(begun, ended, strict=True) if stored.outcome.disturbed]:
                self.manager.store(self.store, aside)
            planned = [
                self._replan(one, run.outcome) if run.outcome.retryable else self._plan(slot, table)
                for (slot, one), run in zip(playing, ended, strict=True)
            ]
        self.manager.store(self.store, list(zip(begun, ended, strict=True)))
        table = replace(table, runs={**table.runs, **dict(zip(slots, ended, strict=True))})
        self._show_round("duet", slots[0][0], table)
        return table

    def _replan(self, ended: RunInFlight, outcome: Outcome) -> PlannedRun:
        try:
            return super()._replan(ended, outcome)
        except CannotRunHereError as error:
            raise NoDuetError(f"a run side by side {outcome.message}", str(error)) from error

    def _put_on_half(self, planned: PlannedRun, slot: tuple[int, int]) -> PlannedRun:
        number, side = slot
        resources = planned.task.job.resources
        cores = self.manager.halves.cores((number // self._others + (side > 0)) % 2, resources)
        job = replace(planned.task.job, resources=replace(resources, cpus=cores))
        return replace(planned, task=replace(planned.task, job=job))

    def _start_duet(self, planned: Sequence[PlannedRun]) -> list[RunInFlight]:
        if begun := self.manager.start_together(planned):
            return begun
        self.manager.check(idle=True)
        msg = "nothing else runs while configurations are compared, yet the cores are taken"
        raise RuntimeError(msg)

    def _wait_for_both(
        self,
        playing: Sequence[tuple[tuple[int, int], RunInFlight]],
        table: DuetTable,
        todo: Sequence[tuple[int, int]],
        budget: int,
    ) -> list[tuple[RunInFlight, Outcome]]:
        outcomes: dict[int, Outcome] = {}
        while len(outcomes) < len(playing):
            going = [(slot, run) for slot, run in playing if run.task.key not in outcomes]
            for task, outcome in self._wait(partial(self._status, going, todo, budget, table)):
                outcomes[task.key] = join_segments(None, outcome, task.segment) if task.segment else outcome
        return [(run, outcomes[run.task.key]) for _, run in playing]

    def check(self, table: DuetTable) -> None:
        """Check that runs that are started together overlap and, if these duets are replaceable, that they work.

        Raises:
            NoDuetError: Too many of them do not.
        """
        if table.is_too_short:
            msg = (
                f"{self.phase} cannot continue: in {table.apart} pairs of runs that were started together, one run "
                "ended before the other had made progress, so they are too short for a duet\n"
                "set verdict.mode = 'interleaved', or make the runs longer, then use the same command again"
            )
            raise NoDuetError("the runs are too short for a duet", msg)
        for index, side in enumerate(self.sides):
            if self.replaceable and not table.is_reliable(index):
                why = f"side by side, {side.label} failed: {table.failures(index)[-1]}"
                raise NoDuetError(why, f"{self.phase} cannot continue: {why}")
