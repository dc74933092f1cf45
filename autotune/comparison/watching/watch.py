"""Watch the winner of a study: run the pairs of a check, and judge all checks so far."""

from dataclasses import dataclass

from autotune.comparison.duets import NoDuetError
from autotune.comparison.findings import present_verdict, standings_of
from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.comparison.verdict_mode import rounds_in_mode
from autotune.comparison.watching.check import Check, checks_of, next_number, surroundings
from autotune.comparison.watching.finding import Finding
from autotune.comparison.watching.judgement import judge, pairs_of_a_check
from autotune.coordination.run_manager import RunManager
from autotune.errors import AutotuneError
from autotune.records.series import Series
from autotune.statistics.mixed_model import Statistic
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import ACCEPTED, ReadableStudy
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile

_SINCE, _WINNER = "since", "winner"


@dataclass(frozen=True)
class Watch:
    """The watch over the winner of a study that has a verdict."""

    store: ReadableStudy
    standings: Standings
    verdict: Verdict

    @classmethod
    def of(cls, store: ReadableStudy, statistic: Statistic) -> "Watch":
        """Return the watch over the winner of a study.

        Raises:
            AutotuneError: The study has no verdict, or its winner is not better than the default.
        """
        standings = standings_of(store, statistic)
        verdict = present_verdict(store, standings)
        if verdict is None or standings.baseline is None:
            msg = (
                f"study {store.name!r} has no verdict yet, so there is no winner to watch: "
                f"`autotune confirm {store.name}` makes one"
            )
            raise AutotuneError(msg)
        if not verdict.significant(standings.metric):
            msg = f"study {store.name!r} has no winner to watch: {verdict.sentence(standings.metric)}"
            raise AutotuneError(msg)
        return cls(store, standings, verdict)

    @property
    def checks(self) -> list[Check]:
        """The checks so far, the oldest first."""
        return checks_of(self.store.runs(), self._sides, self.standings.metric)

    @property
    def pairs(self) -> int:
        """The number of pairs that a check needs, from the noise of the verdict."""
        return pairs_of_a_check(self.verdict.pairs, self.standings.metric)

    @property
    def _sides(self) -> tuple[Side, Side]:
        default, winner = self.standings.baseline, self.standings.trials[self.verdict.winner]
        assert default is not None
        return Side.of(default, "default"), Side.of(winner, f"trial {winner.number}")

    def check(self, store: StudyStore, manager: RunManager, study: StudyFile, pairs: int) -> None:
        """Make a check of `pairs` pairs, or continue one that was interrupted.

        Raises:
            AutotuneError: The check was interrupted, or runs fail for reasons other than their configurations.
        """
        number, winner = next_number(self.checks, pairs), self.verdict.winner
        rounds = ComparisonRounds(
            store,
            manager,
            self.standings,
            Series.watch(winner, number),
            self._sides,
            study.sampler.seed,
            f"check {number}",
            f"trial {winner} against the default",
        )
        try:
            _run_pairs(rounds_in_mode(rounds, self.verdict.mode), pairs)
        except NoDuetError:
            _run_pairs(rounds, pairs)

    def finding(self) -> Finding:
        """Return the finding from all checks so far."""
        checks, accepted = self.checks, self._accepted
        at_verdict = [run for run in self.store.runs() if run.series == self.verdict.series]
        measured = [check for check in checks if check.pairs and check.number > accepted]
        reference = next((check.pairs for check in checks if check.number == accepted), self.verdict.pairs)
        judged = judge(reference, [check.pairs for check in measured], self.standings.metric) if measured else None
        return Finding(
            self.store.name,
            self.verdict,
            self.standings.metric,
            reference,
            tuple(checks),
            tuple(measured),
            judged,
            surroundings(at_verdict),
            self.store.definition,
            accepted,
        )

    @property
    def _accepted(self) -> int:
        stored = self.store.attribute(ACCEPTED) or {}
        return int(stored[_SINCE]) if stored.get(_WINNER) == self.verdict.winner else 0

    def accept(self, store: StudyStore) -> int:
        """Make the check in which the last change began the reference of later checks; return its number.

        Raises:
            AutotuneError: Nothing has changed.
        """
        alarms = self.finding().changes
        if not alarms:
            msg = f"there is nothing to accept: by its checks so far nothing has changed in study {store.name!r}"
            raise AutotuneError(msg)
        since = max(alarm.check.number for alarm in alarms)
        store.set_attribute(ACCEPTED, {_WINNER: self.verdict.winner, _SINCE: since})
        return since


def _run_pairs(rounds: ComparisonRounds, pairs: int) -> None:
    """Run until there are `pairs` pairs, or a side has failed too often."""
    table, wanted = rounds.table(), pairs
    while len(table.pairs(0, 1)) < pairs and table.is_reliable(0) and table.is_reliable(1):
        table = rounds.run_until(wanted)
        wanted += 1
