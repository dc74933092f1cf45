"""Confirming a winner: fresh, interleaved runs of it and of the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.display import Status
from autotune.errors import CannotRunHereError
from autotune.outcome import Outcome
from autotune.records import TrialRecord, baseline, incumbent, speed_up
from autotune.runner import Bench
from autotune.search.store import StudyStore
from autotune.studyfile import VerdictSection
from autotune.trial import Task
from autotune.verdict import Verdict, order_of_pair
from objectives.base import Metric

# A pair of which a run failed is made again; a winner that fails this often is not one.
FAILED_PAIRS = 3
_TICK_S = 0.25


@dataclass(frozen=True)
class Comparison:
    """The two sides of a comparison, and what their runs are made with."""

    bench: Bench
    metric: Metric
    default: TrialRecord
    best: TrialRecord
    seed: int

    def with_pair(self, verdict: Verdict) -> Verdict:
        """Run both sides once more, in random order; a pair of which a run fails counts as a failure."""
        number = len(verdict.pairs)
        values: dict[bool, float] = {}
        for is_default in order_of_pair(self.seed, number + len(verdict.failures)):
            side = self.default if is_default else self.best
            outcome = self._run(side, f"confirm-{self.best.number:05d}-{number:02d}-{side.number:05d}")
            if outcome.failure is not None:
                failure = f"trial {side.number}: {outcome.failure}: {outcome.message}"
                self.bench.display.line(f"confirming: {failure}")
                return replace(verdict, failures=(*verdict.failures, failure))
            values[is_default] = outcome.metrics[self.metric.name]
        base, winner = values[True], values[False]
        self.bench.display.line(
            f"confirming, pair {number + 1}: default {base:g} {self.metric.unit}, "
            f"trial {self.best.number} {winner:g} {self.metric.unit}, {speed_up(winner, base, self.metric):.2f}x"
        )
        return replace(verdict, pairs=(*verdict.pairs, (base, winner)))

    def status(self, verdict: Verdict, pairs: int) -> Status:
        """Return how far the comparison is."""
        return Status(
            metric=self.metric,
            budget=pairs,
            finished=len(verdict.pairs),
            best=self.best,
            baseline=self.default,
            phase="confirming the winner",
        )

    def _run(self, side: TrialRecord, folder: str) -> Outcome:
        for _ in range(self.bench.retries + 1):
            outcome = self._run_once(side, folder)
            if not outcome.retryable:
                return outcome
        msg = f"the winner cannot be confirmed now: {outcome.message}\nmend that, then use the same command again"
        raise CannotRunHereError(msg)

    def _run_once(self, side: TrialRecord, folder: str) -> Outcome:
        task = self.bench.place(self.bench.task(side.number, side.configuration, folder))
        if task is None:
            msg = "no trial runs while a winner is confirmed, yet its cores are taken"
            raise RuntimeError(msg)
        answer = self.default.outcome.answer if self.default.outcome else None
        self.bench.executor.submit(replace(task, reference=answer))
        ended: Sequence[tuple[Task, Outcome]] = []
        while not ended:
            ended = self.bench.executor.wait(_TICK_S)
        self.bench.pool.give_back(task.job.resources.cpus)
        return ended[0][1]


def confirm(store: StudyStore, bench: Bench, settings: VerdictSection, seed: int) -> Verdict | None:
    """Compare the incumbent with the baseline, or return what was found before; None when there is nothing to compare.

    Every pair of runs is stored when it is complete, so that an interrupted comparison goes on where it was.
    """
    trials = store.trials()
    metric = store.definition.target
    best, default = incumbent(trials, metric), baseline(trials)
    if best is None or default is None or best.number == default.number:
        return None
    comparison = Comparison(bench, metric, default, best, seed)
    stored = Verdict.from_dict(store.verdict) if store.verdict else None
    verdict = stored if stored and stored.winner == best.number else Verdict(best.number, settings.confidence)
    verdict = replace(verdict, confidence=settings.confidence)
    while len(verdict.pairs) < settings.pairs and len(verdict.failures) < FAILED_PAIRS:
        bench.display.update(comparison.status(verdict, settings.pairs))
        verdict = comparison.with_pair(verdict)
        store.set_verdict(verdict.to_dict())
    return verdict
