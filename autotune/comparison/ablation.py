"""Ablation: measure each changed option of the winner, alone on the default and taken out of the winner.

All variants run in interleaved rounds with the default and the winner. Options that the winner is no worse without are
dropped. The simplified winner is then compared with both once more, since the winner may need one of two dropped
options.

A point of a trade-off's front gets the same ablation in every metric of the trade-off; an option is dropped only if the
point is no worse without it in any of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from statistics import median

from autotune.comparison.findings import (
    Ablation,
    OptionEffect,
    broken_by_variant,
    changes,
    present_verdict,
    standings_of,
)
from autotune.comparison.round_table import RoundTable, Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.coordination.run_manager import RunManager
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.scheduling.equivalence import Equivalence
from autotune.statistics.ratio_words import Interval
from autotune.statistics.standings import Standings
from autotune.storage.readable_study import ABLATION
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from launchers.software.digest import text_digest
from objectives.base import Metric
from spaces import Configuration, Space

# Enough for all pairs of fifty options, or all groups of four of sixteen.
_MOST_GROUPS = 2000


@dataclass(frozen=True)
class Point:
    """A point of a trade-off's front.

    Attributes:
        trial: The number of its trial.
        metrics: The metrics of the trade-off, the optimised one first.
    """

    trial: int
    metrics: tuple[Metric, ...]


def ablate(  # noqa: PLR0913, PLR0917  a study with what runs it, and what to examine
    store: StudyStore,
    manager: RunManager,
    space: Space,
    study: StudyFile,
    rounds: int,
    point: Point | None = None,
) -> Ablation | None:
    """Run the ablation of the winner, or of `point`, in `rounds` rounds, including those of an earlier call.

    Return None if the winner is the default or there is no default to compare it with.
    """
    standings = standings_of(store, study.repeats.statistic)
    winner = _winner(store, standings) if point is None else standings.trials[point.trial]
    default = standings.baseline
    if winner is None or default is None or winner.number == default.number:
        return None
    metrics = (standings.metric,) if point is None else point.metrics
    comparison = _Comparison(store, manager, space, study, standings, default, winner, metrics)
    result = comparison.run_variants(rounds)
    store.set_attribute(ABLATION, result.to_dict())
    result = comparison.simplify(result)
    store.set_attribute(ABLATION, result.to_dict())
    return result


def _winner(store: StudyStore, standings: Standings) -> TrialRecord | None:
    verdict = present_verdict(store, standings)
    return standings.trials[verdict.winner] if verdict else standings.incumbent


def variant(onto: Configuration, parameter: str, of: Configuration) -> Configuration:
    """Return `onto` with one parameter as it is in `of`, unset if it is unset there."""
    changed = {name: value for name, value in onto.items() if name != parameter}
    return changed | {parameter: of[parameter]} if parameter in of else changed


@dataclass(frozen=True)
class _Move:
    """One or several options that are examined together.

    Attributes:
        options: The options.
        alone: The options to change on the default: these, and those that the rules require with them. Empty if the
            rules require all options, since that would compare the winner with the default.
        within: The options to set back in the winner, in the same way.
    """

    options: tuple[str, ...]
    alone: tuple[str, ...]
    within: tuple[str, ...]


@dataclass(frozen=True)
class _Comparison:
    store: StudyStore
    manager: RunManager
    space: Space
    study: StudyFile
    standings: Standings
    default: TrialRecord
    winner: TrialRecord
    metrics: tuple[Metric, ...]

    @property
    def _name(self) -> str:
        """The name of the configuration under examination: a point of a front is not called winner."""
        return "winner" if len(self.metrics) == 1 else f"trial {self.winner.number}"

    def run_variants(self, rounds: int) -> Ablation:
        """Run the default with each option, and the winner without it; options that rules tie together, together."""
        moves = self._moves()
        sides = [Side.of(self.default, "default"), Side.of(self.winner, self._name)]
        for move in moves:
            if move.alone:
                self._add(sides, Side(f"default with {', '.join(move.alone)}", self._with(move.alone)))
            if move.within:
                self._add(sides, Side(f"{self._name} without {', '.join(move.within)}", self._without(move.within)))
        subject = f"what each option of trial {self.winner.number} is worth"
        table = self._rounds(Series.ablate(self.winner.number), tuple(sides), subject).run_until(rounds)
        first, *others = (
            self._reading(metric, moves, replace(table, metric=metric), rounds) for metric in self.metrics
        )
        return replace(first, further=tuple(others))

    def _reading(self, metric: Metric, moves: Sequence[_Move], table: RoundTable, rounds: int) -> Ablation:
        values = table.values(0).values()
        return Ablation(
            self.winner.number,
            self.study.verdict.confidence,
            rounds,
            tuple(self._effect(move, table, metric) for move in moves),
            baseline=median(values) if values else None,
            combined=self._ratio(table, 0, 1),
            metric=metric.name,
        )

    def simplify(self, result: Ablation) -> Ablation:
        """Drop the options that the winner is no worse without, and compare the simplified configuration."""
        dispensable = [
            row
            for row in result.rows
            if all(effect.is_dispensable for effect in row) and not self._limits_broken_without(row[0].without)
        ]
        # Drop the least important option first, so that a constraint between two options keeps the more important one.
        dispensable.sort(key=lambda row: max((effect.within or effect.alone or (1.0,))[0] for effect in row))
        dropped: list[str] = []
        for effect, *_ in dispensable:
            further = [name for name in effect.without if name not in dropped]
            without = self._without([*dropped, *further])
            # Never drop all options: together they may matter although no single one was seen to.
            if self.space.contains(without) and dict(without) != dict(self.default.configuration):
                dropped += further
        if not dropped:
            return result
        configuration = self._without(dropped)
        sides = [Side.of(self.default, "default"), Side.of(self.winner, self._name)]
        self._add(sides, Side("simplified", configuration))
        series = Series.simplify(self.winner.number, text_digest(",".join(dropped)))
        subject = f"trial {self.winner.number} without {', '.join(dropped)}"
        table = self._rounds(series, tuple(sides), subject).run_until(result.rounds)
        side, broken = self._side(table, configuration), self._limits_broken_without(dropped)
        readings = [
            replace(
                one,
                dropped=tuple(dropped),
                simplified=dict(configuration),
                over_default=self._ratio(replace(table, metric=metric), 0, side),
                over_winner=self._ratio(replace(table, metric=metric), 1, side),
                breaks=broken,
            )
            for metric, one in zip(self.metrics, result.by_metric, strict=True)
        ]
        worse = tuple(one.metric for one in readings if one.over_winner is None or one.over_winner[2] < 1.0)
        first, *others = (replace(one, worse=worse) for one in readings)
        return replace(first, further=tuple(others))

    def _limits_broken_without(self, options: Sequence[str]) -> tuple[str, ...]:
        """Return the limits that the winner breaks without these options."""
        return broken_by_variant(self.store, self.standings.limits, self._without(options))

    def _moves(self) -> list[_Move]:
        """Return the moves of all options; options that need each other in both directions share a move."""
        options = changes(self.winner.configuration, self.default.configuration)
        moves: dict[tuple[frozenset[str], frozenset[str]], _Move] = {}
        for option in options:
            alone = smallest_group(option, options, lambda group: self.space.contains(self._with(group)))
            within = smallest_group(option, options, lambda group: self.space.contains(self._without(group)))
            key = frozenset(alone), frozenset(within)
            known = moves.get(key)
            moves[key] = _Move((*(known.options if known else ()), option), alone, within)
        # A single move of all options is the winner itself.
        return [_Move(move.options, move.options, move.options) if len(moves) == 1 else move for move in moves.values()]

    def _effect(self, move: _Move, table: RoundTable, metric: Metric) -> OptionEffect:
        alone = self._side(table, self._with(move.alone)) if move.alone else None
        within = self._side(table, self._without(move.within)) if move.within else None
        sides = {"alone": alone, f"{self._name if self.metrics[1:] else 'the winner'} without it": within}
        missing = [
            f"{title}: {table.failures(side)[-1] if side else 'valid with all other options only'}"
            for title, side in sides.items()
            if side is None or (side > 0 and table.failures(side))
        ]
        if broken := self._limits_broken_without(move.within) if move.within else ():
            missing.append(f"without it the winner breaks {', '.join(broken)}")
        if not _comparable(table):
            missing.append(f"{metric.name} is not above 0 in every run, so there is no ratio")
        alongside = tuple(name for name in move.within if name not in move.options)
        ignored = all(option in run.outcome.unused for run in self.winner.runs for option in move.options)
        return OptionEffect(
            move.options,
            {name: value for name, value in self.default.configuration.items() if name in move.options},
            {name: value for name, value in self.winner.configuration.items() if name in move.options},
            alone=self._ratio(table, 0, alone),
            within=self._ratio(table, within, 1),
            alone_with=tuple(name for name in move.alone if name not in move.options),
            within_with=alongside,
            why="; ".join(missing),
            unused=(ignored and not alongside)
            or (bool(move.within) and self._twin(self._without(move.within)) == self.winner),
        )

    def _ratio(self, table: RoundTable, slower: int | None, faster: int | None) -> Interval | None:
        if slower is None or faster is None or not _comparable(table):
            return None
        if slower == faster:
            return (1.0, 1.0, 1.0)
        return table.ratio(slower, faster, self.study.verdict.confidence)

    def _twin(self, configuration: Configuration) -> TrialRecord | None:
        """Return the default or the winner if the configuration is equal to it in effect."""
        return Equivalence.of((self.default, self.winner), self.manager.factory.alike).twin(configuration)

    def _side(self, table: RoundTable, configuration: Configuration) -> int | None:
        twin = self._twin(configuration)
        return table.side_of(twin.configuration if twin else configuration)

    def _rounds(self, series: Series, sides: tuple[Side, ...], subject: str) -> ComparisonRounds:
        seed, phase = self.study.sampler.seed, series.kind.label
        return ComparisonRounds(self.store, self.manager, self.standings, series, sides, seed, phase, subject)

    def _add(self, sides: list[Side], side: Side) -> None:
        known = any(dict(other.configuration) == dict(side.configuration) for other in sides)
        if not known and self.space.contains(side.configuration) and not self._twin(side.configuration):
            sides.append(side)

    def _with(self, options: Sequence[str]) -> Configuration:
        return _with_options_of(self.default.configuration, options, self.winner.configuration)

    def _without(self, options: Sequence[str]) -> Configuration:
        return _with_options_of(self.winner.configuration, options, self.default.configuration)


def _comparable(table: RoundTable) -> bool:
    """Whether all values are positive, so that ratios exist."""
    return all(value > 0.0 for side in range(len(table.sides)) for value in table.values(side).values())


def _with_options_of(onto: Configuration, options: Sequence[str], of: Configuration) -> Configuration:
    for option in options:
        onto = variant(onto, option, of)
    return onto


def smallest_group(option: str, options: Sequence[str], is_valid: Callable[[Sequence[str]], bool]) -> tuple[str, ...]:
    """Return an option with the fewest others that make its move valid; empty if it needs all others.

    The search ends after `_MOST_GROUPS` groups, so the result is also empty if an option needs many of many others.
    """
    others = [other for other in options if other != option]
    groups = (group for size in range(max(1, len(others))) for group in combinations(others, size))
    for group in islice(groups, _MOST_GROUPS):
        if is_valid((option, *group)):
            return (option, *group)
    return ()
