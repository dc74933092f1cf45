"""Run a few configurations in rounds: each once a round, in random order.

Comparing within a round removes the machine's slow drift. Random order keeps what one run leaves to the next (caches,
heat) from favouring a side. This is a randomised complete block design (Box, Hunter & Hunter, Statistics for
Experimenters, 2005, chapter 4). Every run is stored when it ends, so that interrupted rounds resume where they were.

With several nodes, all runs of a round use the same node, and rounds are spread evenly over the nodes. A configuration
that is fast on one node only then does not look fast (stratified sampling: Cochran, Sampling Techniques, 1977).
"""

import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from statistics import median

import numpy as np

from autotune.comparison.round_table import RoundTable, Side
from autotune.comparison.time_left import TimeLeft, rounds_left
from autotune.coordination.neighbours import what_to_do
from autotune.coordination.nodes import given_node
from autotune.coordination.run_manager import RunManager
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.display.console import Row, Running, Status
from autotune.errors import CannotRunHereError
from autotune.execution.segments import join_segments
from autotune.execution.task import Task
from autotune.formatting import quantity
from autotune.records.outcome import Outcome
from autotune.records.series import RunId, Series
from autotune.records.study import Purpose, Run
from autotune.statistics.speed_up import SpeedUp
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import middle_ratio
from autotune.storage.study_store import StudyStore
from objectives.base import Answer

_TICK_S = 0.25


def node_of(
    number: int, ran: Mapping[int, str], nodes: Sequence[str], seed: int, used: Collection[str] = ()
) -> str | None:
    """Return the node of a round: that of its other runs, else a random one of those with the fewest rounds.

    Args:
        number: The number of the round.
        ran: The nodes of the rounds so far. A node that has left is not waited for.
        nodes: The nodes to choose from; if empty, the result is None.
        seed: The seed of the random choice.
        used: The nodes on which the sides were chosen. They come last, since a side may owe its choice to good luck
            there.
    """
    if not nodes:
        return None
    if (together := ran.get(number)) in nodes:
        return together
    rounds = Counter(ran.values())
    least = min((rounds[node], node in used) for node in nodes)
    free = sorted(node for node in nodes if (rounds[node], node in used) == least)
    return free[int(np.random.default_rng([seed, number, len(free)]).integers(len(free)))]


@dataclass(frozen=True)
class ComparisonRounds:
    """A series of rounds of a study.

    Attributes:
        store: The study; receives the runs.
        manager: Starts the runs.
        standings: The trials of the study, with the metric and the baseline.
        series: The series of the runs.
        sides: The configurations, the default or base first.
        seed: The seed of the orders.
        phase: The name of the current step, for the display.
        subject: The name of the comparison, for the display.
        other_workload: Whether the runs have another answer than the study's baseline. Their answers must then agree
            with that of the first side, which runs first; else with the baseline's.
        live: Draws the results so far in place of the subject.
        then: How long the steps after these rounds will take.
        over_nodes: Whether to spread the rounds over the nodes of the session, all runs of a round on one node. Runs
            are made one at a time while the session still looks for nodes.
        used: The nodes on which the sides were chosen; other nodes are preferred.
        first: The number of the first round.
        lost: The sides that are not run any more.
        most: The most rounds that may be made in all, for the display; 0 if it is the number that is asked for.
    """

    store: StudyStore
    manager: RunManager
    standings: Standings
    series: Series
    sides: tuple[Side, ...]
    seed: int
    phase: str
    subject: str
    other_workload: bool = False
    live: Callable[[RoundTable], str] | None = None
    then: TimeLeft = field(default_factory=TimeLeft)
    over_nodes: bool = False
    used: Collection[str] = ()
    first: int = 0
    lost: frozenset[int] = frozenset()
    most: int = 0

    def table(self) -> RoundTable:
        """Return the stored runs of this series."""
        runs = (run for run in self.store.runs() if run.series == self.series)
        over_nodes = bool(self._nodes()) or self._looks_for_nodes
        return RoundTable.of(self.sides, runs, self.standings.metric, over_nodes=over_nodes)

    @property
    def _looks_for_nodes(self) -> bool:
        """Whether the session still looks for more nodes."""
        return self.over_nodes and self.manager.nodes.looks

    def _nodes(self) -> Sequence[str]:
        if not self.over_nodes:
            return ()
        return self.manager.nodes.names([side.configuration for side in self.sides])

    def run_until(self, count: int) -> RoundTable:
        """Run until there are `count` rounds, including those of earlier sessions.

        Raises:
            CannotRunHereError: Runs fail for reasons other than their configurations.
            UnfinishedError: The time is over.
            PausedError: The study was paused.
        """
        return self._run_slots(self._slots(count), count)

    def rerun(self, side: int) -> RoundTable:
        """Run one side once more, in the first round without a run of it; raises as `run_until` does."""
        ran = {number for number, other in self.table().runs if other == side}
        number = next(number for number in range(len(ran) + 1) if number not in ran)
        return self._run_slots([(number, side)], number + 1)

    def _run_slots(self, slots: Sequence[tuple[int, int]], count: int) -> RoundTable:
        table = self.table()
        todo = [slot for slot in slots if slot not in table.runs]
        in_flight: dict[int, tuple[tuple[int, int], RunInFlight]] = {}
        while True:
            todo = self._without_unreliable(todo, table)
            while todo and len(in_flight) < self.manager.gate.at_most(self._width(table)):
                in_flight[self._key(todo[0])] = todo[0], self._launch(todo[0], table, in_flight.values())
                del todo[0]
            if not in_flight:
                if todo:
                    self.manager.check(idle=True)
                return table
            for task, outcome in self._wait(partial(self._status, in_flight.values(), todo, self.most or count, table)):
                slot, ended = in_flight.pop(task.key)
                run = self.manager.finish(
                    ended, join_segments(None, outcome, task.segment) if task.segment else outcome
                )
                if run.is_kept:
                    self.manager.store(self.store, [(ended, run)])
                if run.outcome.retryable:
                    in_flight[task.key] = slot, self._rerun(ended, run.outcome, slot, table)
                    continue
                table = replace(table, runs={**table.runs, slot: run})
                if self.live is not None and slot[0] == 0:
                    # Show the runs of the first round at once: the whole round may take long.
                    self.manager.display.detail(f"{self.sides[slot[1]].label}: {self._value(run)}")
                if not any(number == slot[0] for number, _ in (*todo, *(other for other, _ in in_flight.values()))):
                    self._show_round("round", slot[0], table)

    @property
    def _in_pairs(self) -> bool:
        """Whether a run is of no use without the other run of its round."""
        return not self.sides[2:]

    def _without_unreliable(self, slots: Sequence[tuple[int, int]], table: RoundTable) -> list[tuple[int, int]]:
        """Drop the slots of sides that have lost or fail too often; with pairs, drop their whole rounds."""
        failing = {side for side in range(len(self.sides)) if side in self.lost or not table.is_reliable(side)}
        lost = {number for number, side in slots if side in failing and self._in_pairs}
        return [(number, side) for number, side in slots if side not in failing and number not in lost]

    def _slots(self, count: int) -> list[tuple[int, int]]:
        numbers = range(self.first, self.first + count)
        return [(number, side) for number in numbers for side in self._order(number)]

    def _key(self, slot: tuple[int, int]) -> int:
        return slot[0] * len(self.sides) + slot[1]

    def _width(self, table: RoundTable) -> int:
        """Return how many runs may be in flight: 1 until the reference answer and the nodes are known."""
        known = self._reference(table) is not None or not self.other_workload
        return self.manager.gate.width if known and not self._looks_for_nodes else 1

    @property
    def _runs_at_once(self) -> int:
        """How many runs are made at the same time, to estimate the time left."""
        return self.manager.gate.width

    def _order(self, number: int) -> list[int]:
        if self.other_workload and number == 0:
            return list(range(len(self.sides)))
        # Rounds 2n and 2n+1 are mirror images, so that a side is early as often as late. Each series has other orders.
        drawn = np.random.default_rng([self.seed, zlib.crc32(str(self.series).encode()), number // 2])
        order = [int(side) for side in drawn.permutation(len(self.sides))]
        return order[:: -1 if number % 2 else 1]

    def _reference(self, table: RoundTable) -> Answer | None:
        if self.other_workload:
            complete = (run for (_, side), run in table.runs.items() if side == 0 and run.outcome.complete)
            return next((run.outcome.answer for run in complete), None)
        baseline = self.standings.baseline
        return baseline.answer if baseline else None

    def _put_on_node(
        self,
        planned: PlannedRun,
        number: int,
        table: RoundTable,
        in_flight: Iterable[tuple[tuple[int, int], RunInFlight]] = (),
    ) -> PlannedRun:
        """Return a planned run with the node of its round."""
        if not self.over_nodes:
            return planned
        nodes = self._nodes()
        ran = {of: run.host for (of, _), run in table.runs.items()}
        ran |= {of: node for (of, _), run in in_flight if (node := given_node(run))}
        begins_elsewhere = self._looks_for_nodes and ran.get(number) not in nodes
        chosen = None if begins_elsewhere else node_of(number, ran, nodes, self.seed, self.used)
        return self.manager.nodes.place(planned, chosen)

    def _launch(
        self,
        slot: tuple[int, int],
        table: RoundTable,
        in_flight: Iterable[tuple[tuple[int, int], RunInFlight]],
    ) -> RunInFlight:
        return self._start(self._put_on_node(self._plan(slot, table), slot[0], table, in_flight))

    def _plan(self, slot: tuple[int, int], table: RoundTable) -> PlannedRun:
        number, side = slot
        chosen = self.sides[side]
        name = str(RunId(self.series, round=number, side=side))
        purpose = Purpose(chosen.configuration, chosen.trial, self.series, number)
        reference, seed = self._reference(table), self._seed(number)
        return self.manager.prepare(self._key(slot), purpose, name, reference=reference, seed=seed)

    def _rerun(self, ended: RunInFlight, outcome: Outcome, slot: tuple[int, int], table: RoundTable) -> RunInFlight:
        return self._start(self._put_on_node(self._replan(ended, outcome), slot[0], table))

    def _replan(self, ended: RunInFlight, outcome: Outcome) -> PlannedRun:
        again = self.manager.plan_retry(ended, outcome)
        if again is None:
            # Otherwise the next session would adopt this job and fail in the same way.
            self.manager.registry.release(ended.name)
            msg = (
                f"{self.phase} cannot continue: {outcome.message}\n"
                f"{what_to_do(outcome)}, then use the same command again"
            )
            raise CannotRunHereError(msg)
        return again

    def _start(self, planned: PlannedRun) -> RunInFlight:
        if planned.inherited is None:
            self.manager.wait_until_quiet()
        run = self.manager.start(planned)
        if run is None:
            self.manager.check(idle=True)
            msg = "nothing else runs while configurations are compared, yet the cores are taken"
            raise RuntimeError(msg)
        return run

    def _seed(self, number: int) -> int:
        """Return the seed that the runs of a round receive: the same for all sides, another one in every round.

        It is never 0, the seed of tuning: the winner was chosen with that one and may owe its rank to it.
        """
        return 1 + zlib.crc32(f"{self.series} {number}".encode())

    def _wait(self, status: Callable[[], Status]) -> Sequence[tuple[Task, Outcome]]:
        while True:
            self.manager.display.update(status())
            if ended := self.manager.executor.wait(_TICK_S):
                return ended
            self.manager.check()

    def _show_round(self, kind: str, number: int, table: RoundTable) -> None:
        """Show the values of a round; without them all it is a failure."""
        runs = [(side, table.runs.get((number, index))) for index, side in enumerate(self.sides)]
        ended = [(side, run) for side, run in runs if run is not None]
        text = ", ".join(f"{side.label} {self._value(run)}" for side, run in ended)
        display = self.manager.display
        show = display.detail if all(run.outcome.complete for _, run in ended) else display.line
        show(f"{self.phase}, {kind} {number + 1}: {text}")

    def _value(self, run: Run) -> str:
        metric, outcome = self.standings.metric, run.outcome
        return quantity(outcome.metrics[metric.name], metric) if outcome.complete else outcome.message

    def _status(
        self,
        in_flight: Iterable[tuple[tuple[int, int], RunInFlight]],
        todo: Sequence[tuple[int, int]],
        count: int,
        table: RoundTable,
    ) -> Status:
        waits = self.manager.executor.why_waits
        runs = sorted((number, side, run.started, run.task.job.name) for (number, side), run in in_flight)
        now = datetime.now(UTC)
        running = tuple(
            Running(
                self.sides[side].trial,
                self.sides[side].configuration,
                (now - datetime.fromisoformat(started)).total_seconds(),
                label=self.sides[side].label,
                waits=waits(name),
            )
            for _, side, started, name in runs
        )
        subject = (self.live(table) if self.live is not None else "") or self.subject
        waiting = [side for _, side in todo] + [side for _, side, *_ in runs]
        left = rounds_left(((side, run) for (_, side), run in table.runs.items()), waiting)
        left = None if left is None else left.divide(self._runs_at_once) + self.then
        return Status(
            self.standings,
            budget=count,
            open_ended=self.most > 0,
            finished=runs[0][0],
            running=running,
            left_s=left.least_s if left is not None else None,
            left_most_s=left.most_s if left is not None else None,
            phase=self.phase,
            subject=subject,
            compared=tuple(self._ratios(table)) if self.live is None else (),
        )

    def _ratios(self, table: RoundTable) -> Iterator[Row]:
        """Yield a row for each trial: its speed-up over the first side, the default, in the rounds so far.

        If the default does not run, it is the median value.
        """
        metric = self.standings.metric
        for index, side in enumerate(self.sides[1:], start=1):
            pairs = table.pairs(0, index) if side.trial is not None else []
            values = table.values(index).values() if 0 in self.lost else ()
            if values:
                number = f"{len(values)} round{'s' * (len(values) > 1)}"
                yield Row(side.configuration, f"{quantity(median(values), metric)} in {number}", side.label)
            if pairs:
                value = f"{SpeedUp(middle_ratio(pairs, metric)).text()} by {len(pairs)} round{'s' * (len(pairs) > 1)}"
                yield Row(side.configuration, value, side.label)
