"""Carrying over: whether the winner of a study is better than the default on its other workloads, too.

An optimum of one size of a problem may be a loss on another one. The winner is compared with the default on every
other workload of the study file in interleaved pairs, as for the verdict.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.comparison.blocks import Blocks, Side
from autotune.comparison.confirm import compared
from autotune.comparison.findings import (
    WorkloadComparison,
    changes,
    present_verdict,
    standings_of,
    stored_workload_comparisons,
)
from autotune.coordination.run_manager import RunManager
from autotune.records.series import Series
from autotune.records.workload import Workload
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.readable import WORKLOADS
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile


def compare_on_workloads(
    store: StudyStore, manager: RunManager, study: StudyFile, workloads: Sequence[Workload]
) -> None:
    """Compare the winner with the default on each of the workloads; do nothing without a significant winner."""
    standings = standings_of(store, study.repeats.statistic)
    verdict = present_verdict(store, standings)
    if verdict is None or standings.baseline is None or not verdict.significant(standings.metric):
        return
    known = {comparison.workload: comparison for comparison in stored_workload_comparisons(store)}
    for workload in workloads:
        comparison = _Comparison(store, manager, study, standings, workload).carried(verdict, known)
        _keep(store, known, comparison)


@dataclass(frozen=True)
class _Comparison:
    store: StudyStore
    manager: RunManager
    study: StudyFile
    standings: Standings
    workload: Workload

    def carried(self, verdict: Verdict, known: dict[str, WorkloadComparison]) -> WorkloadComparison:
        default, winner = self.standings.baseline, self.standings.trials[verdict.winner]
        assert default is not None
        workload, settings = self.workload, self.study.verdict
        differences = len(changes(winner.configuration, default.configuration))
        empty = Verdict(
            winner.number,
            (winner.number,),
            differences,
            settings.confidence,
            settings.precision,
            of_gain=settings.of_gain,
        )
        comparison = WorkloadComparison(workload.name, workload.digest, dict(workload.plan.facts), empty)
        for title, trial in (("the default", default), ("the winner", winner)):
            if broken := workload.space.violations(trial.configuration):
                return replace(comparison, why=f"{title} is not valid there: {'; '.join(broken)}")
        sides = (
            Side("default", default.configuration),
            Side(f"trial {winner.number}", winner.configuration),
        )
        rounds = Blocks(
            self.store,
            self.manager.for_objective(workload.plan.objective),
            self.standings,
            Series.workload(workload.name, workload.digest, winner.number),
            sides,
            self.study.sampler.seed,
            f"workload {workload.name}",
            f"trial {winner.number} against the default on workload {workload.name}",
            other_workload=True,
        )
        verdict = compared(
            empty, rounds, settings, lambda verdict: _keep(self.store, known, replace(comparison, verdict=verdict))
        )
        return replace(comparison, verdict=verdict)


def _keep(store: StudyStore, known: dict[str, WorkloadComparison], comparison: WorkloadComparison) -> None:
    known[comparison.workload] = comparison
    store.set_attribute(WORKLOADS, {name: entry.to_dict() for name, entry in known.items()})
