"""Confirm a decision table: in each context, compare the settings that look better with the default in fresh runs.

One run measures all points of its context, so a round serves many cells. The contexts with the largest expected gain
come first, until the runs that the study file allows are spent.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.comparison.findings import standings_of
from autotune.comparison.round_table import Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.coordination.run_manager import RunManager
from autotune.decisions.table import DecisionTable, cell_series, decision_table, gain_of
from autotune.formatting import configuration_text
from autotune.records.series import Series
from autotune.records.study import Run
from autotune.statistics.verdict import FAILED_OFTEN
from autotune.storage.readable_study import ReadableStudy
from autotune.storage.study_store import StudyStore
from autotune.studyfile import DecisionsSection, StudyFile
from objectives.decision import Decision
from spaces import Configuration


@dataclass(frozen=True)
class ContextComparison:
    """The default of a context, and the settings that look better at some of its points."""

    series: Series
    about: str
    sides: tuple[Side, ...]

    def is_complete(self, runs: Sequence[Run], pairs: int) -> bool:
        """Whether every side has run in `pairs` rounds or has failed too often."""
        for ran in self._by_side(runs):
            failed = sum(not run.outcome.complete for run in ran)
            if failed < FAILED_OFTEN and len({run.round for run in ran}) < pairs:
                return False
        return True

    def first_round(self, runs: Sequence[Run]) -> int:
        """Return the first round in which all sides run.

        When a setting is added later, the others run again beside it, since only runs of the same round are compared.
        """
        rounds = [{run.round for run in ran} for ran in self._by_side(runs)]
        return max(map(min, rounds)) if all(rounds) else 1 + max(set[int]().union(*rounds), default=-1)

    def _by_side(self, runs: Sequence[Run]) -> list[list[Run]]:
        """Return the runs of each side."""
        own = [run for run in runs if run.series == self.series]
        wanted = [dict(side.configuration) for side in self.sides]
        return [[run for run in own if dict(run.configuration) == side] for side in wanted]


def plan_comparisons(table: DecisionTable, pairs: int, most_runs: int) -> list[ContextComparison]:
    """Return the comparisons to make, those with the largest expected gain first.

    Cells with weight 0, which the program does not use, are left out.

    Args:
        table: The table.
        pairs: The number of rounds of each comparison.
        most_runs: The largest number of runs of all comparisons together.
    """
    weights = [1.0] * len(table.believed) if table.shares is None else table.shares.by_cell
    by_context: dict[str, list[tuple[Decision, float]]] = {}
    for decision, weight in zip(table.believed, weights, strict=True):
        if not decision.is_default and weight:
            by_context.setdefault(configuration_text(decision.contexts), []).append((decision, weight))
    ordered = sorted(by_context.items(), key=lambda each: -gain_of(*zip(*each[1], strict=True)))
    found, left = [], most_runs
    for about, weighted in ordered:
        comparison = _compare_context(about, [decision for decision, _ in weighted])
        left -= pairs * len(comparison.sides)
        if left < 0:
            break
        found.append(comparison)
    return found


def confirm_table(store: StudyStore, manager: RunManager, study: StudyFile, section: DecisionsSection) -> None:
    """Compare the settings that look better in the table with the default, in fresh interleaved runs.

    Raises:
        AutotuneError: As `ComparisonRounds.run_until` does.
    """
    table = decision_table(store, section)
    wanted = plan_comparisons(table, study.verdict.pairs, section.verdict_runs)
    weights = [1.0] * len(table.believed) if table.shares is None else table.shares.by_cell
    contexts = len(
        {
            configuration_text(one.contexts)
            for one, weight in zip(table.believed, weights, strict=True)
            if weight and not one.is_default
        }
    )
    if contexts > len(wanted):
        manager.display.line(
            f"{contexts - len(wanted)} of {contexts} contexts are not compared with the default in fresh runs: they "
            f"would need more runs than decisions.verdict_runs, {section.verdict_runs}, allows"
        )
    if wanted:
        manager.display.line(f"confirming {len(wanted)} contexts of the table against the default")
    standings = standings_of(store, study.repeats.statistic)
    for number, comparison in enumerate(wanted, start=1):
        ComparisonRounds(
            store,
            manager,
            standings,
            comparison.series,
            comparison.sides,
            study.sampler.seed,
            f"table, context {number} of {len(wanted)}",
            comparison.about,
            # A context has its own answer, so its runs cannot be checked against that of the study's default.
            other_workload=True,
            first=comparison.first_round(store.runs()),
        ).run_until(study.verdict.pairs)


def is_confirmed(store: ReadableStudy, study: StudyFile, section: DecisionsSection) -> bool:
    """Whether all planned comparisons are complete."""
    table, runs, pairs = decision_table(store, section), store.runs(), study.verdict.pairs
    wanted = plan_comparisons(table, pairs, section.verdict_runs)
    return all(comparison.is_complete(runs, pairs) for comparison in wanted)


def _compare_context(about: str, decisions: Sequence[Decision]) -> ContextComparison:
    first = decisions[0]
    settings: dict[str, Configuration] = {
        configuration_text(decision.chosen): decision.chosen for decision in decisions
    }
    others = (Side(name, {**first.contexts, **setting}) for name, setting in settings.items())
    default = Side("default", {**first.contexts, **first.default})
    return ContextComparison(cell_series(first.contexts), about, (default, *others))
