"""Confirming: the best few of a study are compared once more, then the chosen trial with the baseline.

First the candidates and the baseline run in interleaved rounds. Of those that are not significantly slower than the
best of them, nor look slower by a gain that matters, the one with the fewest changes from the default wins. It then
runs against the baseline in fresh pairs, which are all that the verdict counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log

from autotune.comparison.blocks import Blocks, BlockTable, Side
from autotune.comparison.findings import changes, present_verdict
from autotune.comparison.time_left import pairs_left
from autotune.coordination.run_manager import RunManager
from autotune.records.mix import MixedInput, mixed_inputs
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.statistics.mixed_model import MeasuredRun, fit
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict, pairs_needed, ratio_interval
from autotune.storage.readable import VERDICT
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile, VerdictSection
from objectives.base import Metric


@dataclass(frozen=True)
class Contest:
    """The trials that compete at the end of a study."""

    standings: Standings
    default: TrialRecord
    candidates: tuple[TrialRecord, ...]


def contest(standings: Standings, count: int) -> Contest | None:
    """Return the candidates: the best `count` that look better than the baseline; None when none does."""
    default = standings.baseline
    if default is None:
        return None
    before = standings.ranking[: standings.ranking.index(default)]
    return Contest(standings, default, tuple(before[:count])) if before else None


def confirm(store: StudyStore, manager: RunManager, study: StudyFile) -> Verdict | None:
    """Find the winner and compare it with the baseline; None when there is nothing to compare.

    Stored runs count, of an interrupted comparison or of an earlier comparison of the same trials.
    """
    settings, seed = study.verdict, study.sampler.seed
    standings = Standings.of(store.trials(), store.definition.target, study.repeats.statistic)
    competition = contest(standings, settings.candidates)
    if competition is None:
        return None
    stored = present_verdict(store, standings)
    if stored is not None:
        winner, numbers = standings.trials[stored.winner], stored.candidates
    else:
        winner, numbers = (
            _winner(store, manager, study, competition),
            tuple(trial.number for trial in competition.candidates),
        )
    differences = len(changes(winner.configuration, competition.default.configuration))
    verdict = Verdict(winner.number, numbers, differences, settings.confidence, settings.precision)
    sides = (Side.of(competition.default, "default"), Side.of(winner, f"trial {winner.number}"))
    series, subject = Series.verdict(winner.number), f"trial {winner.number} against the default"
    rounds = Blocks(store, manager, standings, series, sides, seed, "confirming", subject)
    return compared(verdict, rounds, settings, lambda verdict: store.set_attribute(VERDICT, verdict.to_dict()))


def compared(verdict: Verdict, rounds: Blocks, settings: VerdictSection, keep: Callable[[Verdict], None]) -> Verdict:
    """Run pairs until there are enough; `keep` receives the verdict on the way, and in the end.

    The sides are the default and the winner.
    """
    table, inputs = rounds.table(), mixed_inputs(rounds.store.definition)
    verdict = _with_pairs(verdict, table, inputs)
    while True:
        wanted = pairs_wanted(verdict, settings, rounds.standings.metric)
        ended = len(verdict.pairs) >= wanted or not (table.is_reliable(0) and table.is_reliable(1))
        # The pairs of an earlier session may do, for a verdict that is not stored yet; a few of them say nothing.
        if ended or len(verdict.pairs) >= settings.pairs:
            keep(verdict)
        if ended:
            return verdict
        pairs = settings.max_pairs - settings.pairs if len(verdict.pairs) < settings.pairs else 0
        default, winner = rounds.standings.baseline, rounds.standings.trials.get(verdict.winner)
        more = pairs_left(default, winner, 0, pairs) if default is not None and winner is not None else rounds.then
        table = replace(rounds, then=more).until(wanted + len(verdict.failures))
        verdict = _with_pairs(verdict, table, inputs)


def pairs_wanted(verdict: Verdict, settings: VerdictSection, metric: Metric) -> int:
    """Return the number of pairs needed for the precision that is set, estimated from the first pairs."""
    if len(verdict.pairs) < settings.pairs:
        return settings.pairs
    first = ratio_interval(verdict.pairs[: settings.pairs], metric, settings.confidence)
    return min(settings.max_pairs, pairs_needed(first, settings.pairs, settings.precision))


def _with_pairs(verdict: Verdict, table: BlockTable, inputs: Sequence[MixedInput]) -> Verdict:
    failures = [f"trial {verdict.winner}: {text}" for text in table.failures(1)]
    failures += [f"default: {text}" for text in table.failures(0)]
    by_input = {one.name: tuple(replace(table, metric=one.target.name).pairs(0, 1)) for one in inputs}
    return replace(verdict, pairs=tuple(table.pairs(0, 1)), failures=tuple(failures), inputs=by_input)


def _winner(store: StudyStore, manager: RunManager, study: StudyFile, competition: Contest) -> TrialRecord:
    """Let the candidates compete; return the simplest of those not distinguishable from the best."""
    if len(competition.candidates) == 1:
        return competition.candidates[0]
    sides = (
        Side.of(competition.default, "default"),
        *(Side.of(trial, f"trial {trial.number}") for trial in competition.candidates),
    )
    series = Series.select([trial.number for trial in competition.candidates])
    then = pairs_left(competition.default, competition.candidates[0], study.verdict.pairs, study.verdict.max_pairs)
    subject = f"choosing among trials {', '.join(str(trial.number) for trial in competition.candidates)}"
    rounds = Blocks(
        store, manager, competition.standings, series, sides, study.sampler.seed, "choosing", subject, then=then
    )
    table = rounds.until(study.verdict.rounds)
    samples = [
        MeasuredRun(index, number, competition.standings.to_log(value))
        for index in range(len(sides))
        for number, value in table.values(index).items()
    ]
    effects = fit(samples, "mean")
    reliable = [index for index in range(1, len(sides)) if table.is_reliable(index) and effects.count(index)]
    if not reliable:
        return competition.candidates[0]
    best = min(reliable, key=effects.center)
    from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

    alike = [best]
    for index in reliable:
        contrast = effects.contrast(index, best)
        noise = contrast.standard_error * float(stdtrit(contrast.degrees, 0.5 + study.verdict.confidence / 2))
        if index != best and contrast.difference < min(noise, log(1.0 + study.repeats.min_gain)):
            alike.append(index)
    simplest = min(
        alike,
        key=lambda index: (
            len(changes(sides[index].configuration, competition.default.configuration)),
            effects.center(index),
        ),
    )
    if len(alike) > 1:
        names = ", ".join(sides[index].label for index in sorted(alike))
        manager.display.line(f"{names} cannot be told apart: {sides[simplest].label} is the simplest")
    return competition.candidates[simplest - 1]
