"""Compare commands in rounds, without a study or a storage: each runs once a round, in random order.

Each command runs once before the rounds. That run does not count: it fills the caches, and shows whether the command
works. Of two commands, all rounds are pairs of the comparison. Of several, the rounds only choose the best one, which
then runs against the first in fresh pairs, since the best of several looks better than it is.
"""

import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from math import log, sqrt
from pathlib import Path
from typing import Any

import numpy as np

from autotune.comparison.pairs import pairs_wanted
from autotune.comparison.round_table import RoundTable, Side
from autotune.coordination.disturbances import Disturbances
from autotune.coordination.neighbours import NEVER_QUIET
from autotune.coordination.runs import PlannedRun, RunInFlight
from autotune.errors import CannotRunHereError, NothingWorkedError
from autotune.execution.run_folder import fresh_folder
from autotune.execution.task import Task, run_task
from autotune.formatting import plain
from autotune.records.outcome import Outcome
from autotune.records.series import WARM_UP, Series
from autotune.records.study import Purpose, Run
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval, ends, times
from autotune.statistics.verdict import (
    FAILED_OFTEN,
    middle_ratio,
    pairs_needed,
    precise_enough,
    precision,
    ratio_interval,
)
from autotune.studyfile import NoiseSection, VerdictSection
from launchers import STDERR, Job
from launchers.job import Surroundings
from launchers.local import LocalLauncher
from launchers.secret import mask_words
from objectives.base import Answer
from objectives.command import ELAPSED, CommandObjective, CommandOptions
from objectives.command_options import AnswerOptions
from objectives.figure import read_text

# Without a number of runs, rounds take at most about this time, except that short ones suffice for few commands only.
_USUAL_S = 15.0
_LEAST_MOST, _MOST = 20, 200
_USUAL_ROUNDS = 8
_PRECISION = 0.01
_ROUNDS = Series.sweep("commands")
_FRESH = Series.sweep("fresh")
_QUOTED_LINES = 5


@dataclass(frozen=True)
class CommandSide(Side):
    """A command that is compared.

    Attributes:
        argv: Its words; only the job gets them.
        public: Options that a parameter fills in, which are not secrets.
    """

    argv: tuple[str, ...] = ()
    public: frozenset[str] = frozenset()

    @cached_property
    def shown(self) -> list[str]:
        """Its words with secrets masked, for people and files."""
        return mask_words(self.argv, self.public)


@dataclass(frozen=True)
class CommandStarter:
    """Runs commands, one at a time.

    Attributes:
        folder: A folder for their output.
        surroundings: The folder, environment and standard input in which they start.
        prepare: A command that runs before each of them and is not measured; empty for none.
        answer: How to read the result that all of them must print; None if none is compared.
    """

    folder: Path
    surroundings: Surroundings
    prepare: tuple[str, ...] = ()
    answer: AnswerOptions | None = None

    def run(self, side: CommandSide, reference: Answer | None) -> tuple[Task, Outcome]:
        """Run a side once.

        Raises:
            CannotRunHereError: The command that prepares it failed.
        """
        if self.prepare:
            _, prepared = self._run(self.prepare, "prepare", None, None)
            if not prepared.complete:
                msg = f"{shlex.join(mask_words(self.prepare))}, which prepares each run, {self.failure(prepared)}"
                raise CannotRunHereError(msg)
        return self._run(side.argv, side.label, self.answer, reference)

    def failure(self, outcome: Outcome) -> str:
        """Return why the last run failed, with the last lines of its standard error."""
        text = read_text(self.folder / "run" / STDERR) or ""
        lines = plain(text).splitlines()[-_QUOTED_LINES:]
        which = "its last lines"
        if lines and lines[-1].strip() in outcome.message:
            which = "the lines before"
            lines.pop()
        return "\n  ".join([f"{outcome.message}\n{which} on standard error:", *lines]) if lines else outcome.message

    def _run(
        self, argv: tuple[str, ...], name: str, answer: AnswerOptions | None, reference: Answer | None
    ) -> tuple[Task, Outcome]:
        job = Job(argv, fresh_folder(self.folder / "run"), name=name, surroundings=self.surroundings)
        objective = CommandObjective(CommandOptions(argv=list(argv), answer=answer))
        task = Task(0, job, objective, reference)
        return task, run_task(task, LocalLauncher())


@dataclass(frozen=True)
class CommandComparison:
    """The state of a comparison of commands.

    Attributes:
        table: The rounds of all sides.
        fresh: The fresh pairs of the first side and the `best` one; of two commands, the rounds.
        best: The side that looks best among several; None before that is known, or if none looks better than the first.
        aside: The runs that were disturbed and made again.
        settings: The confidence and the precision.
    """

    table: RoundTable
    fresh: RoundTable
    best: int | None
    aside: tuple[Run, ...]
    settings: VerdictSection

    def ratio(self, side: int) -> Interval | None:
        """Return how many times as fast as the first a side is in the rounds; None with too few of them."""
        return self.table.ratio(0, side, self.settings.confidence)

    @property
    def compared(self) -> int | None:
        """The side whose ratio to the first is the result; None if none looks better."""
        return 1 if len(self.table.sides) == 2 else self.best

    def runs_of(self, side: int) -> list[Run]:
        """Return the runs of a side, those of fresh pairs last."""
        return [run for table in self._tables for run in table.runs_of(side)]

    def failures(self, side: int) -> list[str]:
        """Return the messages of a side's runs that failed."""
        return [message for table in self._tables for message in table.failures(side)]

    def is_reliable(self, side: int) -> bool:
        """Whether a side has failed seldom enough to be compared."""
        return all(table.is_reliable(side) for table in self._tables)

    @property
    def _tables(self) -> list[RoundTable]:
        return [self.table] if self.fresh is self.table else [self.table, self.fresh]

    def sentences(self) -> list[str]:
        """Return the result in words, and what would make it surer."""
        side, confidence = self.compared, self.settings.confidence
        pairs = [] if side is None else self.fresh.pairs(0, side)
        ratio = None if side is None else self.fresh.ratio(0, side, confidence)
        if side is not None and ratio is not None:
            fresh = "(this ratio is of fresh pairs: the best of several looks better than it is)"
            return [*self._compared(side, pairs, ratio), *([] if self.fresh is self.table else [fresh])]
        for one in (0, side):
            if one is not None and not self.is_reliable(one):
                return [f"{self.table.sides[one].label} failed too often to compare with"]
        first = self.table.sides[0].label
        if side is None:
            return [f"none looks faster than {first}"]
        looks = ""
        if pairs:
            second, factor = self.table.sides[side].label, middle_ratio(pairs, ELAPSED)
            if factor < 1.0:
                first, second, factor = second, first, 1.0 / factor
            looks = f"{second} looks {factor:.3g} times as fast as {first}; "
        return [
            f"{looks}{len(pairs)} of the {signed_rank.least_pairs(confidence)} pairs of runs that an interval needs"
        ]

    def _compared(self, side: int, pairs: Sequence[tuple[float, float]], ratio: Interval) -> list[str]:
        first, second = self.table.sides[0].label, self.table.sides[side].label
        confidence = self.settings.confidence
        about = f"median of the pairs' ratios; {confidence:.0%} interval {{}}, {len(pairs)} interleaved pairs of runs"
        middle, low, high = ratio
        if high < 1.0:
            first, second, ratio = second, first, (1.0 / middle, 1.0 / high, 1.0 / low)
        said = f"{second} is {times(ratio[0], ELAPSED, '.3f')} {first} ({about.format(ends(ratio, ELAPSED))})"
        if low <= 1.0 <= high:
            said = f"no difference beyond the noise: {said}"
        enough = precise_enough(ratio, self.settings.precision, self.settings.of_gain)
        if precision(ratio) <= enough:
            return [said]
        needed = pairs_needed(ratio, len(pairs), enough)
        count = f"about {needed}" if needed <= _MOST else f"more than {_MOST}"
        return [said, f"{count} pairs would narrow that to {enough:.1%} to either side"]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        compared = self.compared
        return {
            "confidence": self.settings.confidence,
            "sides": [
                {
                    "name": side.label,
                    "command": side.shown if isinstance(side, CommandSide) else [],
                    "values": dict(side.configuration),
                    "median_s": self.table.medians(index).get(ELAPSED.name),
                    "ratio": self.ratio(index) if index else None,
                }
                for index, side in enumerate(self.table.sides)
            ],
            "compared": None if compared is None else self.table.sides[compared].label,
            "ratio": compared and self.fresh.ratio(0, compared, self.settings.confidence),
            "sentences": self.sentences(),
            "runs": list(self.rows()),
        }

    def rows(self) -> list[dict[str, Any]]:
        """Return a row for each run, in the order in which they began."""
        runs = [*self.aside, *(run for table in self._tables for run in table.runs.values())]
        return [self._row(run) for run in sorted(runs, key=lambda run: run.started)]

    def _row(self, run: Run) -> dict[str, Any]:
        outcome, side = run.outcome, self.table.side_of(run.configuration)
        return {
            "name": "" if side is None else self.table.sides[side].label,
            "round": run.round,
            "fresh": run.series == _FRESH,
            "state": "aside" if outcome.disturbed else "complete" if outcome.complete else "failed",
            "elapsed_s": outcome.measured.get(ELAPSED.name),
            "cpu_s": outcome.usage.cpu_s,
            "taken_share": outcome.disturbance.taken_share,
            "message": outcome.message,
        }


@dataclass
class CommandRounds:
    """Runs commands in rounds.

    Attributes:
        sides: The commands; the others are compared with the first.
        starter: Runs them.
        runs: The largest number of runs of each in pairs; None for a number by the time.
        rounds: The number of rounds of several commands; None for the usual one.
        rng: Draws the orders.
        say: Gets lines for the user.
        show: Gets the state, which replaces the one before.
    """

    sides: tuple[CommandSide, ...]
    starter: CommandStarter
    runs: int | None
    rng: np.random.Generator
    say: Callable[[str], None]
    show: Callable[[str], None]
    rounds: int | None = None
    _made: dict[Series, dict[tuple[int, int], Run]] = field(default_factory=lambda: {_ROUNDS: {}, _FRESH: {}})
    _aside: list[Run] = field(default_factory=list)
    _best: int | None = None
    _round_s: float = 0.0
    _reference: Answer | None = None

    def run(self) -> CommandComparison:
        """Run until the comparison is precise enough, or more runs would not decide it.

        Raises:
            NothingWorkedError: A command fails in its first run.
            CannotRunHereError: Runs fail for other reasons than the commands.
        """
        began = time.monotonic()
        for side in self.sides:
            run = self._run(WARM_UP, 0, side)
            if not run.outcome.complete:
                raise NothingWorkedError(f"{shlex.join(side.shown)}: {self.starter.failure(run.outcome)}")
            self._reference = self._reference or run.outcome.answer
        self._round_s = time.monotonic() - began
        if len(self.sides) == 2:
            self._run_pairs(_ROUNDS, 1)
            return self.comparison
        while self._count(_ROUNDS) < self._rounds:
            self._run_round(_ROUNDS, range(len(self.sides)))
        table = self.comparison.table
        looks = {
            side: middle_ratio(pairs, ELAPSED)
            for side in range(1, len(self.sides))
            if table.is_reliable(0) and table.is_reliable(side) and (pairs := table.pairs(0, side))
        }
        best = max(looks, key=lambda side: looks[side], default=None)
        if best is not None and looks[best] > 1.0:
            self._best = best
            self._run_pairs(_FRESH, best)
        return self.comparison

    @property
    def comparison(self) -> CommandComparison:
        """The present state."""
        table, fresh = (RoundTable(self.sides, dict(self._made[one]), ELAPSED) for one in (_ROUNDS, _FRESH))
        of_two = len(self.sides) == 2
        return CommandComparison(table, table if of_two else fresh, self._best, tuple(self._aside), self._settings)

    @property
    def _settings(self) -> VerdictSection:
        usual = VerdictSection(precision=_PRECISION)
        least = signed_rank.least_pairs(usual.confidence)
        most = self.runs
        if most is None:
            most = int(min(max(_USUAL_S / max(self._round_s, 1e-3), _LEAST_MOST), _MOST))
        return usual.model_copy(update={"pairs": min(usual.pairs, max(most, least)), "max_pairs": max(most, least)})

    @cached_property
    def _judge(self) -> Disturbances:
        return Disturbances.of(NoiseSection(), ELAPSED, (), self.say, len(self.sides) * self._settings.pairs)

    @property
    def _rounds(self) -> int:
        return min(self.rounds or _USUAL_ROUNDS, self.runs or _MOST)

    def _count(self, series: Series) -> int:
        return 1 + max((number for number, _ in self._made[series]), default=-1)

    def _run_pairs(self, series: Series, side: int) -> None:
        """Run pairs of the first side and another one."""
        settings = self._settings
        while True:
            table = self.comparison.fresh
            pairs = table.pairs(0, side)
            most = self.runs or settings.max_pairs
            if self._count(series) >= most + FAILED_OFTEN or not (table.is_reliable(0) and table.is_reliable(side)):
                return
            if len(pairs) >= min(pairs_wanted(pairs, settings, ELAPSED), most) or _is_hopeless(pairs, settings):
                return
            self._run_round(series, (0, side))

    def _run_round(self, series: Series, among: Sequence[int]) -> None:
        """Run a round; every second one is the mirror image of the one before, so that a side is early as often."""
        number, table = self._count(series), RoundTable(self.sides, self._made[series], ELAPSED)
        if number % 2 == 0:
            self._order = [among[int(place)] for place in self.rng.permutation(len(among))]
        for side in self._order if number % 2 == 0 else self._order[::-1]:
            if table.is_reliable(side):
                self._made[series][number, side] = self._run(series, number, self.sides[side])

    def _run(self, series: Series, number: int, side: CommandSide) -> Run:
        purpose = Purpose(side.configuration, None, series, number)
        self.show(self._state(series, number, side))
        while True:
            started = datetime.now(UTC).isoformat()
            task, outcome = self.starter.run(side, self._reference)
            made = RunInFlight(PlannedRun(task, purpose), started, {})
            outcome = self._judge.judge(made, outcome)
            run = made.run_to_store(replace(outcome, timeline=()), {}, {})
            if not outcome.retryable:
                return run
            if not outcome.disturbed:
                raise CannotRunHereError(f"{shlex.join(side.shown)}: {self.starter.failure(outcome)}")
            self._aside.append(run)
            if self._judge.mode == "refuse":
                raise CannotRunHereError(f"{side.label} {outcome.message}\n{NEVER_QUIET}")

    def _state(self, series: Series, number: int, side: CommandSide) -> str:
        if series == WARM_UP:
            return f"{side.label} runs for the first time, which does not count"
        found = self.comparison
        best = found.best or 1
        table = found.fresh if series == _FRESH else found.table
        pairs = table.pairs(0, best)
        so_far = ""
        if pairs and (series == _FRESH or len(self.sides) == 2):
            ratio = table.ratio(0, best, found.settings.confidence)
            within = f" ({ends(ratio, ELAPSED)})" if ratio else ""
            ratio_text = f"{middle_ratio(pairs, ELAPSED):.3f} times as fast as {self.sides[0].label}"
            so_far = f": {self.sides[best].label} {ratio_text}{within}"
        of = (
            self._rounds
            if series == _ROUNDS and len(self.sides) > 2
            else f"at most {self.runs or found.settings.max_pairs}"
        )
        return f"{'fresh pair' if series == _FRESH else 'round'} {number + 1} of {of}{so_far}"


def _is_hopeless(pairs: Sequence[tuple[float, float]], settings: VerdictSection) -> bool:
    """Whether the pairs left are unlikely to show a difference, if the next ones are like those so far."""
    if len(pairs) < 2 * settings.pairs or len(pairs) >= settings.max_pairs:
        return False
    middle, low, high = ratio_interval(pairs, ELAPSED, settings.confidence)
    share, width = len(pairs) / settings.max_pairs, log(high / low) / 2.0
    # A standard error is about half of the interval's half-width; let the estimate move by one that is left.
    return abs(log(middle)) + width / 2.0 * sqrt(1.0 - share) < width * sqrt(share)
