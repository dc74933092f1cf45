"""Verify that the winner of a study is better than the default on its inputs of weight 0, too.

A configuration that is best on one input may lose on another. The winner and the default are compared on each of these
inputs in interleaved pairs, as for the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.comparison.confirm import run_pairs
from autotune.comparison.findings import (
    InputComparison,
    changes,
    present_verdict,
    standings_of,
    stored_input_comparisons,
)
from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.coordination.run_manager import RunManager
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.records.verified_input import VerifiedInput
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import VERIFIED_INPUTS
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from spaces import Configuration


def verify_on_inputs(store: StudyStore, manager: RunManager, study: StudyFile, inputs: Sequence[VerifiedInput]) -> None:
    """Compare the winner with the default on each of the inputs; do nothing without a significant winner."""
    standings = standings_of(store, study.repeats.statistic)
    verdict = present_verdict(store, standings)
    if verdict is None or standings.baseline is None or not verdict.significant(standings.metric):
        return
    known = {comparison.name: comparison for comparison in stored_input_comparisons(store)}
    for one in inputs:
        comparison = _Verification(store, manager, study, standings, one).compare(verdict, known)
        _store(store, known, comparison)


@dataclass(frozen=True)
class _Verification:
    store: StudyStore
    manager: RunManager
    study: StudyFile
    standings: Standings
    input: VerifiedInput

    def compare(self, verdict: Verdict, known: dict[str, InputComparison]) -> InputComparison:
        default, winner = self.standings.baseline, self.standings.trials[verdict.winner]
        assert default is not None
        one, settings = self.input, self.study.verdict
        differences = len(changes(winner.configuration, default.configuration))
        empty = Verdict(
            winner.number,
            (winner.number,),
            differences,
            settings.confidence,
            settings.precision,
            of_gain=settings.of_gain,
        )
        comparison = InputComparison(one.name, one.digest, dict(one.plan.facts), empty)
        sides = Side("default", self._restrict(default)), Side(f"trial {winner.number}", self._restrict(winner))
        for title, side in zip(("the default", "the winner"), sides, strict=True):
            if broken := one.space.violations(side.configuration):
                return replace(comparison, why=f"{title} is not valid there: {'; '.join(broken)}")
        if sides[0].configuration == sides[1].configuration:
            return replace(comparison, why="the winner is the default there")
        rounds = ComparisonRounds(
            self.store,
            self.manager.for_objective(one.plan.objective),
            self.standings,
            Series.workload(one.name, one.digest, winner.number),
            sides,
            self.study.sampler.seed,
            f"input {one.name}",
            f"trial {winner.number} against the default on input {one.name}",
            other_workload=True,
        )
        verdict = run_pairs(
            empty, rounds, settings, lambda verdict: _store(self.store, known, replace(comparison, verdict=verdict))
        )
        return replace(comparison, verdict=verdict)

    def _restrict(self, trial: TrialRecord) -> Configuration:
        """Return the configuration without the parameters that the input does not have, as a mix would run it."""
        names = {parameter.name for parameter in self.input.space.parameters}
        return {name: value for name, value in trial.configuration.items() if name in names}


def _store(store: StudyStore, known: dict[str, InputComparison], comparison: InputComparison) -> None:
    known[comparison.name] = comparison
    store.set_attribute(VERIFIED_INPUTS, {name: entry.to_dict() for name, entry in known.items()})
