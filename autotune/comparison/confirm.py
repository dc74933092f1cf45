"""Confirm the winner of a study: choose among the best trials, then compare the chosen one with the default.

First the candidates run in interleaved rounds; after the second one, those that have clearly lost do not run again. A
candidate is as good as the best one if it is neither significantly slower nor looks slower by a gain that matters; of
these, the one with the fewest changes from the default wins. The winner and the default then run in fresh pairs, and
the verdict counts only these pairs.

With several nodes, rounds and pairs are spread over the nodes. Twice as many candidates compete then, since a trial may
look best because it ran on a good node. The same holds if the machine drifted while tuning: a trial may look best
because it ran at a good time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from math import log

from autotune.comparison.duets import Duets, NoDuetError
from autotune.comparison.findings import changes, present_verdict, standings_of
from autotune.comparison.pairs import pairs_affordable, pairs_wanted
from autotune.comparison.point_verdict import point_verdict
from autotune.comparison.round_table import RoundTable, Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.comparison.time_left import pairs_left
from autotune.comparison.verdict_mode import ChosenMode, choose_mode, rounds_in_mode
from autotune.coordination.run_manager import RunManager
from autotune.records.limit import breaks
from autotune.records.series import Series, SeriesKind
from autotune.records.study import TrialRecord
from autotune.statistics.mixed_model import MeasuredRun, MixedModel, fit
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import VERDICT
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile, VerdictSection
from autotune.studyfile.definition import MixedInput
from objectives.base import Metric

# From this standard deviation of the drift on, in logarithms, the ranking of tuning is in doubt.
_DRIFTS = 0.02
# The fitted ratio of drift to noise comes from a grid, so compare it with a little less than 1.
_AS_MUCH = 0.99
# A candidate that is worse at this confidence does not run again. The first round shows too little of the noise.
_CLEAR = 0.99
_LEAST_ROUNDS = 2


@dataclass(frozen=True)
class Selection:
    """The trials that compete at the end of a study.

    Attributes:
        standings: The trials of the study.
        default: The trial of the default configuration.
        candidates: The trials that compete, the best first.
        unable: Trials that look as good but cannot run on the nodes of the others.
    """

    standings: Standings
    default: TrialRecord
    candidates: tuple[TrialRecord, ...]
    unable: tuple[TrialRecord, ...] = ()

    @property
    def numbers(self) -> tuple[int, ...]:
        """The numbers of all candidates, also of those that are unable to run, the best of tuning first."""
        both = {trial.number for trial in (*self.candidates, *self.unable)}
        return tuple(trial.number for trial in self.standings.ranking if trial.number in both)


def select_candidates(standings: Standings, count: int) -> Selection | None:
    """Return the best `count` trials that look better than the baseline; None if no trial does.

    All of them keep the limits. If the baseline breaks a limit, every trial that keeps the limits is better than it.
    """
    default = standings.baseline
    if default is None:
        return None
    before = standings.ranking
    if standings.limits.keeps(default.number):
        before = before[: before.index(default)]
    return Selection(standings, default, tuple(before[:count])) if before else None


def candidate_count(standings: Standings, settings: VerdictSection) -> int:
    """Return the largest number of candidates: twice the usual number if the machine drifted as much as runs differ."""
    drift, noise = standings.effects.drift, standings.effects.noise
    return settings.candidates * (2 if drift > _DRIFTS and drift >= noise * _AS_MUCH else 1)


def confirm(store: StudyStore, manager: RunManager, study: StudyFile) -> Verdict | None:
    """Find the winner and compare it with the baseline; return None if there is nothing to compare.

    Stored runs of an interrupted or an earlier comparison of the same trials count. The winner must keep the limits in
    fresh runs; if it breaks one, the next best trials compete.
    """
    while True:
        standings = standings_of(store, study.repeats.statistic)
        selection = _select_on_nodes(standings, manager, study.verdict)
        if selection is None:
            return None
        verdict = _judge(store, manager, study, selection)
        if verdict is not None and _filter_by_limits(store, manager, study, [standings.trials[verdict.winner]]):
            return verdict


def _select_on_nodes(standings: Standings, manager: RunManager, settings: VerdictSection) -> Selection | None:
    """Return the candidates; with several nodes, only those that can run together on as many nodes as are asked for."""
    default = standings.baseline
    if default is None:
        return None
    nodes, least = manager.nodes, settings.nodes or 1
    nodes.check([default.configuration], settings.nodes)
    several = nodes.are_several([default.configuration])
    selection = select_candidates(
        standings, len(standings.ranking) if several else candidate_count(standings, settings)
    )
    if selection is None or not several:
        return selection
    able: list[TrialRecord] = []
    unable: list[TrialRecord] = []
    for trial in selection.candidates:
        if len(able) == 2 * settings.candidates:
            break
        together = [one.configuration for one in (default, *able, trial)]
        (able if nodes.have(least, together) else unable).append(trial)
    if unable:
        numbers = ", ".join(str(trial.number) for trial in unable)
        manager.display.line(f"left out, as they cannot run on {least} nodes together with better trials: {numbers}")
    return replace(selection, candidates=tuple(able), unable=tuple(unable)) if able else None


def _filter_by_limits(
    store: StudyStore, manager: RunManager, study: StudyFile, trials: Sequence[TrialRecord]
) -> list[TrialRecord]:
    """Return the trials that keep the limits in the fresh runs so far; display which limits the others break."""
    limits = standings_of(store, study.repeats.statistic).limits
    for trial in trials:
        if broken := limits.breaches(trial.number):
            manager.display.line(f"trial {trial.number} {breaks(broken)} in fresh runs: it cannot win")
    return [trial for trial in trials if limits.keeps(trial.number)]


def _judge(store: StudyStore, manager: RunManager, study: StudyFile, selection: Selection) -> Verdict | None:
    """Return the verdict on the best candidate; None if no candidate keeps the limits in fresh runs."""
    settings, seed, standings = study.verdict, study.sampler.seed, selection.standings
    stored = present_verdict(store, standings)
    if stored is not None:
        winner, numbers = standings.trials[stored.winner], stored.candidates
    else:
        best = _choose_winner(store, manager, study, selection)
        if best is None:
            return None
        winner, numbers = best, selection.numbers
    differences = len(changes(winner.configuration, selection.default.configuration))
    verdict = Verdict(
        winner.number,
        numbers,
        differences,
        settings.confidence,
        settings.precision,
        nodes_asked=settings.nodes,
        of_gain=settings.of_gain,
    )
    sides = (Side.of(selection.default, "default"), Side.of(winner, f"trial {winner.number}"))
    series, subject = Series.verdict(winner.number), f"trial {winner.number} against the default"
    if stored is None:
        manager.display.line(f"confirming {subject}")
    used = {run.host for run in store.runs() if run.series.kind is SeriesKind.SELECT}
    rounds = ComparisonRounds(
        store, manager, standings, series, sides, seed, "confirming", subject, over_nodes=True, used=used
    )

    def compare(mode: ChosenMode) -> Verdict:
        begun = mode.add_to(verdict, settings)
        return run_pairs(begun, mode.rounds, settings, lambda found: store.set_attribute(VERDICT, found.to_dict()))

    try:
        return compare(choose_mode(rounds, settings, selection.default, winner))
    except NoDuetError as error:
        if settings.mode == "duet":
            raise
        return compare(ChosenMode.in_turns(rounds, error.why))


def confirm_point(
    store: StudyStore, manager: RunManager, study: StudyFile, metrics: Sequence[Metric], point: TrialRecord
) -> None:
    """Compare a point of a trade-off's front with the baseline until every metric has the precision asked for.

    Stored runs count. Do nothing if there is no baseline or the point is the baseline.
    """
    settings, standings = study.verdict, standings_of(store, study.repeats.statistic)
    default = standings.baseline
    while True:
        verdict = point_verdict(store.runs(), standings, metrics, point, settings.confidence)
        if default is None or verdict is None or not (more := verdict.missing(settings)):
            return
        label = f"trial {point.number}"
        sides, series = (Side.of(default, "default"), Side.of(point, label)), Series.verdict(point.number)
        subject = f"{label} against the default"
        if not verdict.pairs:
            manager.display.line(f"confirming {subject}")
        seed = study.sampler.seed
        rounds = ComparisonRounds(
            store, manager, standings, series, sides, seed, "confirming", subject, over_nodes=True
        )
        rounds.run_until(verdict.pairs + more + len(verdict.failures))


def run_pairs(
    verdict: Verdict, rounds: ComparisonRounds, settings: VerdictSection, keep: Callable[[Verdict], None]
) -> Verdict:
    """Run pairs until the verdict has the precision asked for, or one side fails too often.

    Args:
        verdict: The verdict without its pairs.
        rounds: Rounds of the default and the winner.
        settings: How many pairs, and with which precision.
        keep: Stores the verdict; called whenever it has enough pairs to be shown, and at the end.
    """
    table, inputs = rounds.table(), rounds.store.definition.mixed_inputs
    verdict = _with_pairs(verdict, table, inputs)
    while True:
        affordable = pairs_affordable(rounds.store.runs(), len(verdict.pairs), settings)
        wanted = pairs_wanted(verdict.pairs, settings, rounds.standings.metric, affordable)
        ended = len(verdict.pairs) >= wanted or not (table.is_reliable(0) and table.is_reliable(1))
        # Pairs of an earlier session may be enough for a verdict that was not stored yet. Fewer than the minimum mean
        # nothing, so do not store a verdict on them.
        if ended or len(verdict.pairs) >= settings.pairs:
            keep(verdict)
        if ended:
            return verdict
        pairs = settings.max_pairs - wanted
        default, winner = rounds.standings.baseline, rounds.standings.trials.get(verdict.winner)
        more = pairs_left(default, winner, 0, pairs) if default is not None and winner is not None else rounds.then
        table = replace(rounds, then=more).run_until(wanted + len(verdict.failures) + table.count_unpaired(0, 1))
        verdict = _with_pairs(verdict, table, inputs)


def _with_pairs(verdict: Verdict, table: RoundTable, inputs: Sequence[MixedInput]) -> Verdict:
    by_input = {one.name: tuple(replace(table, metric=one.target).pairs(0, 1)) for one in inputs}
    nodes = tuple(table.nodes(0, 1)) if table.over_nodes else ()
    pairs, abreast = tuple(table.pairs(0, 1)), table.overlap()
    failures = tuple(table.named_failures((1, 0)))
    unknown = table.unknown(0, 1)
    return replace(
        verdict, pairs=pairs, failures=failures, inputs=by_input, nodes=nodes, abreast=abreast, unknown=unknown
    )


def _choose_winner(
    store: StudyStore, manager: RunManager, study: StudyFile, selection: Selection
) -> TrialRecord | None:
    """Run the candidates in rounds and return the simplest of those that do not differ from the best.

    The result is None if every candidate breaks a limit in these runs.
    """
    if len(selection.candidates) == 1:
        return selection.candidates[0]
    sides = (
        Side.of(selection.default, "default"),
        *(Side.of(trial, f"trial {trial.number}") for trial in selection.candidates),
    )
    series = Series.select([trial.number for trial in selection.candidates])
    then = pairs_left(selection.default, selection.candidates[0], study.verdict.pairs, study.verdict.max_pairs)
    subject = f"choosing among trials {', '.join(str(trial.number) for trial in selection.candidates)}"
    manager.display.line(subject)
    seed, standings = study.sampler.seed, selection.standings
    rounds = ComparisonRounds(
        store, manager, standings, series, sides, seed, "choosing", subject, then=then, over_nodes=True
    )
    chosen_mode = rounds_in_mode(rounds, study.verdict.mode)
    table = _race(chosen_mode, study)
    keeping = _filter_by_limits(store, manager, study, selection.candidates)
    if not keeping:
        return None
    effects = _effects(table, standings)
    reliable = [
        index
        for index in range(1, len(sides))
        if selection.candidates[index - 1] in keeping and table.is_reliable(index) and effects.count(index)
    ]
    if not reliable:
        return keeping[0]
    # A configuration that fails on one node must not win: it will be used on all of them.
    reliable = [index for index in reliable if not (table.over_nodes and table.failures(index))] or reliable
    best = min(reliable, key=effects.center)
    alike = [best]
    for index in reliable:
        difference, noise = _difference(effects, index, best, study.verdict.confidence)
        if index != best and difference < min(noise, log(1.0 + study.repeats.min_gain)):
            alike.append(index)
    simplest = min(
        alike,
        key=lambda index: (
            len(changes(sides[index].configuration, selection.default.configuration)),
            effects.center(index),
        ),
    )
    if len(alike) > 1:
        names = ", ".join(sides[index].label for index in sorted(alike))
        manager.display.line(f"{names} do not differ beyond the noise: {sides[simplest].label} is the simplest")
    return selection.candidates[simplest - 1]


def _race(rounds: ComparisonRounds, study: StudyFile) -> RoundTable:
    """Run the rounds of the candidates; return their runs.

    A candidate that has clearly lost against a sound one does not run again. Where runs wait in a queue, or must work
    on every node, all rounds are made at once.

    Args:
        rounds: The rounds of the default and the candidates.
        study: The study file.
    """
    # In turns the default is not needed here; in a duet it is the partner of each candidate.
    partner = frozenset[int]() if isinstance(rounds, Duets) else frozenset({0})
    most, lost = study.verdict.rounds, frozenset[int]()
    if rounds.manager.gate.width > 1 or rounds.table().over_nodes:
        return replace(rounds, lost=partner).run_until(most)
    rounds = replace(rounds, most=most)
    for count in range(_LEAST_ROUNDS, most + 1):
        table = replace(rounds, lost=lost | partner).run_until(count)
        limits = standings_of(rounds.store, study.repeats.statistic).limits
        able = {
            index
            for index, side in enumerate(rounds.sides)
            if index and side.trial is not None and limits.keeps(side.trial) and not table.failures(index)
        }
        if not able - lost:
            # The candidate that beat the others fails now, so the others compete again.
            lost = frozenset()
            table = replace(rounds, lost=partner).run_until(count)
        lost |= _clear_losers(_effects(table, rounds.standings), able - lost, study.repeats.min_gain)
        if len(able - lost) == 1 and len(lost) == len(rounds.sides) - 2:
            break
    return table


def _effects(table: RoundTable, standings: Standings) -> MixedModel:
    samples = [MeasuredRun(index, number, standings.to_log(value)) for index, number, value in table.side_values()]
    return fit(samples, "mean")


def _clear_losers(effects: MixedModel, sound: Iterable[int], min_gain: float) -> frozenset[int]:
    """Return the sides that are worse than the best sound one by a gain that matters and by far more than the noise."""
    best = min((side for side in sound if effects.count(side)), key=effects.center, default=None)
    if best is None:
        return frozenset()
    lost = set()
    for side in effects.runs:
        difference, noise = _difference(effects, side, best, _CLEAR)
        if side and difference > max(noise, log(1.0 + min_gain)):
            lost.add(side)
    return frozenset(lost)


def _difference(effects: MixedModel, side: int, best: int, confidence: float) -> tuple[float, float]:
    """Return how much worse a side is than the best one, as a logarithm, and how far that may be noise."""
    from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

    contrast = effects.contrast(side, best)
    return contrast.difference, contrast.standard_error * float(stdtrit(contrast.degrees, 0.5 + confidence / 2))
