"""Ablation: what each option of the winner is worth, alone on top of the default and taken back out of the winner.

All variants run in interleaved rounds with the default and the winner. Options whose removal costs nothing are named
and dropped, and the simplified winner is compared with both once more, since two options can each stand in for the
other.
"""

from dataclasses import dataclass, replace
from statistics import median

from autotune.comparison.blocks import Blocks, BlockTable, Side
from autotune.comparison.findings import Ablation, OptionEffect, changes, present_verdict
from autotune.coordination.run_manager import RunManager
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.scheduling.equivalence import Equivalence
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import ratio_interval
from autotune.storage.readable import ABLATION
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from objectives.digest import text_digest
from spaces import Configuration, Space


def ablate(store: StudyStore, manager: RunManager, space: Space, study: StudyFile, rounds: int) -> Ablation | None:
    """Take the winner apart in `rounds` rounds, those of an earlier call included; None if the default won."""
    standings = Standings.of(store.trials(), store.definition.target, study.repeats.statistic)
    winner, default = _winner(store, standings), standings.baseline
    if winner is None or default is None or winner.number == default.number:
        return None
    comparison = _Comparison(store, manager, space, study, standings, default, winner)
    result = comparison.taken_apart(rounds)
    store.set_attribute(ABLATION, result.to_dict())
    result = comparison.simplified(result)
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
class _Comparison:
    store: StudyStore
    manager: RunManager
    space: Space
    study: StudyFile
    standings: Standings
    default: TrialRecord
    winner: TrialRecord

    def taken_apart(self, rounds: int) -> Ablation:
        """Run every option alone, and the winner without it."""
        options = changes(self.winner.configuration, self.default.configuration)
        sides = [Side.of(self.default, "default"), Side.of(self.winner, "winner")]
        for option in options:
            self._add(sides, Side(f"default with {option}", self._alone(option)))
            self._add(sides, Side(f"winner without {option}", self._without([option])))
        subject = f"what each option of trial {self.winner.number} is worth"
        table = self._rounds(Series.ablate(self.winner.number), tuple(sides), subject).until(rounds)
        values = table.values(0).values()
        return Ablation(
            self.winner.number,
            self.study.verdict.confidence,
            rounds,
            tuple(self._effect(option, table) for option in options),
            baseline=median(values) if values else None,
            combined=self._ratio(table, 0, 1),
        )

    def simplified(self, result: Ablation) -> Ablation:
        """Drop the options that do nothing, and compare the configuration without them."""
        nothing = [effect for effect in result.effects if effect.does_nothing]
        # The least important option goes first, so that a constraint between two options keeps the more important.
        nothing.sort(key=lambda effect: (effect.within or effect.alone or (1.0,))[0])
        dropped: list[str] = []
        for effect in nothing:
            if self.space.contains(self._without([*dropped, effect.parameter])):
                dropped.append(effect.parameter)
        if not dropped:
            return result
        configuration = self._without(dropped)
        sides = [Side.of(self.default, "default"), Side.of(self.winner, "winner")]
        self._add(sides, Side("simplified", configuration))
        series = Series.simplify(self.winner.number, text_digest(",".join(dropped)))
        subject = f"trial {self.winner.number} without {', '.join(dropped)}"
        table = self._rounds(series, tuple(sides), subject).until(result.rounds)
        side = self._place(table, configuration)
        return replace(
            result,
            dropped=tuple(dropped),
            simplified=dict(configuration),
            over_default=self._ratio(table, 0, side),
            over_winner=self._ratio(table, 1, side),
        )

    def _effect(self, option: str, table: BlockTable) -> OptionEffect:
        alone, without = self._alone(option), self._without([option])
        invalid = [
            f"{title} is not valid: {'; '.join(self.space.violations(configuration))}"
            for title, configuration in (("alone", alone), ("the winner without it", without))
            if not self.space.contains(configuration)
        ]
        return OptionEffect(
            option,
            self.default.configuration.get(option),
            self.winner.configuration.get(option),
            alone=self._ratio(table, 0, self._place(table, alone)),
            within=self._ratio(table, self._place(table, without), 1),
            why="; ".join(invalid),
            unused=all(option in run.outcome.unused for run in self.winner.runs) or self._same(without) == self.winner,
        )

    def _ratio(self, table: BlockTable, slower: int | None, faster: int | None) -> Interval | None:
        if slower is None or faster is None:
            return None
        if slower == faster:
            return (1.0, 1.0, 1.0)
        pairs = table.pairs(slower, faster)
        confidence = self.study.verdict.confidence
        if len(pairs) < signed_rank.least_pairs(confidence):
            return None
        return ratio_interval(pairs, self.standings.metric, confidence)

    def _same(self, configuration: Configuration) -> TrialRecord | None:
        """Return the default or the winner if the configuration is the same in effect."""
        return Equivalence.of((self.default, self.winner), self.manager.factory.alike).twin(configuration)

    def _place(self, table: BlockTable, configuration: Configuration) -> int | None:
        twin = self._same(configuration)
        return table.place(twin.configuration if twin else configuration)

    def _rounds(self, series: Series, sides: tuple[Side, ...], subject: str) -> Blocks:
        seed, phase = self.study.sampler.seed, series.kind.label
        return Blocks(self.store, self.manager, self.standings, series, sides, seed, phase, subject)

    def _add(self, sides: list[Side], side: Side) -> None:
        known = any(dict(other.configuration) == dict(side.configuration) for other in sides)
        if not known and self.space.contains(side.configuration) and not self._same(side.configuration):
            sides.append(side)

    def _alone(self, option: str) -> Configuration:
        return variant(self.default.configuration, option, self.winner.configuration)

    def _without(self, options: list[str]) -> Configuration:
        configuration = self.winner.configuration
        for option in options:
            configuration = variant(configuration, option, self.default.configuration)
        return configuration
