"""Confirming a winner: fresh, interleaved runs of it and of the baseline."""

from collections.abc import Sequence
from dataclasses import replace

from autotune.display import Status
from autotune.outcome import Outcome
from autotune.records import TrialRecord, baseline, incumbent, speed_up
from autotune.runner import Bench
from autotune.search.store import StudyStore
from autotune.studyfile import VerdictSection
from autotune.verdict import Verdict, order_of_pair

# A pair of which a run failed is made again; a winner that fails this often is not one.
_FAILED_PAIRS = 3


def confirm(store: StudyStore, bench: Bench, settings: VerdictSection, seed: int) -> Verdict | None:
    """Compare the incumbent with the baseline, or return what was found before; None when there is nothing to compare.

    Every pair of runs is stored when it is complete, so that an interrupted comparison goes on where it was.
    """
    trials = store.trials()
    metric = store.definition.target
    best, default = incumbent(trials, metric), baseline(trials)
    if best is None or default is None or best.number == default.number:
        return None
    stored = Verdict.from_dict(store.verdict) if store.verdict else None
    verdict = stored if stored and stored.winner == best.number else Verdict(best.number, settings.confidence)
    verdict = replace(verdict, confidence=settings.confidence)
    while len(verdict.pairs) < settings.pairs and len(verdict.failures) < _FAILED_PAIRS:
        bench.display.update(
            Status(
                metric=metric,
                budget=settings.pairs,
                finished=len(verdict.pairs),
                best=best,
                baseline=default,
                phase="confirming the winner",
            )
        )
        verdict = _with_pair(verdict, bench, store, default, best, seed)
        store.set_verdict(verdict.to_dict())
    return verdict


def _with_pair(
    verdict: Verdict, bench: Bench, store: StudyStore, default: TrialRecord, best: TrialRecord, seed: int
) -> Verdict:
    metric = store.definition.target
    number = len(verdict.pairs)
    values: dict[bool, float] = {}
    for is_default in order_of_pair(seed, number + len(verdict.failures)):
        side = default if is_default else best
        outcome = _run(bench, side, default, f"confirm-{best.number:05d}-{number:02d}-{side.number:05d}")
        if outcome.failure is not None:
            failure = f"trial {side.number}: {outcome.failure}: {outcome.message}"
            bench.display.line(f"confirming: {failure}")
            return replace(verdict, failures=(*verdict.failures, failure))
        values[is_default] = outcome.metrics[metric.name]
    base, winner = values[True], values[False]
    bench.display.line(
        f"confirming, pair {number + 1}: default {base:g} {metric.unit}, trial {best.number} {winner:g} {metric.unit}, "
        f"{speed_up(winner, base, metric):.2f}x"
    )
    return replace(verdict, pairs=(*verdict.pairs, (base, winner)))


def _run(bench: Bench, side: TrialRecord, default: TrialRecord, folder: str) -> Outcome:
    task = bench.place(bench.task(side.number, side.configuration, folder))
    if task is None:
        msg = "no trial runs while a winner is confirmed, yet its cores are taken"
        raise RuntimeError(msg)
    if default.outcome is not None:
        task = replace(task, reference=default.outcome.answer)
    bench.executor.submit(task)
    ended: Sequence[tuple[object, Outcome]] = []
    while not ended:
        ended = bench.executor.wait(0.25)
    bench.pool.give_back(task.job.resources.cpus)
    return ended[0][1]
