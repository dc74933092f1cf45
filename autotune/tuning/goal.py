"""The goal of a study: one winner, the front of a trade-off, or a decision table.

A goal compares what tuning found with the default in fresh runs, and says whether that has been done.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from autotune.comparison.confirm import confirm, confirm_point
from autotune.comparison.confirm_table import confirm_table, is_confirmed
from autotune.comparison.pairs import pairs_affordable, pairs_wanted
from autotune.comparison.verified_inputs import verify_on_inputs
from autotune.coordination.run_manager import RunManager
from autotune.planning.prepare import Prepared
from autotune.records.limit import breaks
from autotune.records.study import Run, State
from autotune.results.summary import FrontSummary, Summary, summarise
from autotune.scheduling.repeats import RepeatScheduler
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile import DecisionsSection, StudyFile
from objectives.base import Metric


class Goal(Protocol):
    """The kind of result that a study looks for."""

    def confirm(self, store: StudyStore, manager: RunManager) -> None:
        """Compare what tuning found with the default in fresh runs."""
        ...

    def is_confirmed(self, store: StudyStore, summary: Summary) -> bool:
        """Whether `confirm` has no run left to make; `summary` is that of the study in `store`."""
        ...

    def needs_tuning(self, summary: Summary) -> bool:
        """Whether a stopped trial must run again, because the trial that it lost to breaks a limit.

        The limits may have changed since, or the other trial broke them in fresh runs only.
        """
        ...


def goal_of(study: StudyFile, prepared: Prepared) -> Goal:
    """Return the goal of a study."""
    if study.decisions is not None:
        return Table(study, study.decisions)
    return OneWinner(study, prepared) if study.tradeoff is None else Front(study)


def is_done(store: StudyStore, study: StudyFile, prepared: Prepared) -> bool:
    """Whether every trial is finished and the result is confirmed, so that the same command has nothing left to do."""
    summary = summarise(store)
    size = prepared.space.size
    wanted = min(study.budget.most, size.value) if size.exact else study.budget.most
    stopped = summary.outlook is not None and summary.outlook.holds(summary.standings, study)
    if (summary.finished < wanted and not stopped) or summary.finished < len(summary.trials):
        return False
    return goal_of(study, prepared).is_confirmed(store, summary)


@dataclass(frozen=True)
class OneWinner:
    """The goal of most studies: the best trial, compared with the default, also on the inputs of weight 0."""

    study: StudyFile
    prepared: Prepared

    def confirm(self, store: StudyStore, manager: RunManager) -> None:
        """Choose the winner, compare it with the default, and repeat that on the inputs of weight 0."""
        confirm(store, manager, self.study)
        verify_on_inputs(store, manager, self.study, self.prepared.verified)

    def is_confirmed(self, store: StudyStore, summary: Summary) -> bool:
        """Whether winner and default have enough pairs, on the study's input and on those of weight 0."""
        runs = store.runs()
        if not self._is_winner_compared(runs, summary):
            return False
        verdict, metric = summary.present_verdict, summary.standings.metric
        if verdict is None or not verdict.significant(metric):
            return True
        compared = {(one.name, one.digest): one for one in summary.verified}
        for wanted in self.prepared.verified:
            found = compared.get((wanted.name, wanted.digest))
            if found is None or not (found.why or self._has_enough_pairs(runs, found.verdict, metric)):
                return False
        return True

    def needs_tuning(self, summary: Summary) -> bool:
        """Whether a stopped trial may still win, because the trial that it lost to breaks a limit."""
        return _has_capped_candidate(self.study, summary)

    def _is_winner_compared(self, runs: Sequence[Run], summary: Summary) -> bool:
        standings, verdict = summary.standings, summary.present_verdict
        if self.needs_tuning(summary):
            return False
        best = standings.ranking[0] if standings.ranking else None
        if standings.baseline is None or best is None or best.number == standings.baseline.number:
            return True
        if verdict is None or self.study.verdict.mode not in {verdict.mode, verdict.mode_asked}:
            return False
        return self._has_enough_pairs(runs, verdict, standings.metric)

    def _has_enough_pairs(self, runs: Sequence[Run], verdict: Verdict, metric: Metric) -> bool:
        if verdict.given_up:
            return True
        pairs, settings = verdict.pairs, self.study.verdict
        affordable = pairs_affordable(runs, len(pairs), settings)
        return verdict.known and len(pairs) >= pairs_wanted(pairs, settings, metric, affordable)


@dataclass(frozen=True)
class Front:
    """The goal of a trade-off: the Pareto front.

    Only the point that the weights prefer is compared with the default.
    """

    study: StudyFile

    def confirm(self, store: StudyStore, manager: RunManager) -> None:
        """Compare the preferred point with the default; if it breaks a limit in fresh runs, the next preferred one.

        Without weights no point is preferred, and none is compared.
        """
        while True:
            summary = summarise(store)
            preference, front = summary.preference, summary.front
            if preference is None or front is None:
                return
            point = summary.standings.trials[preference.point.trial]
            confirm_point(store, manager, self.study, front.metrics, point)
            broken = summarise(store).standings.limits.breaches(point.number)
            if not broken:
                return
            manager.display.line(f"trial {point.number} {breaks(broken)} in fresh runs: another point is chosen")

    def is_confirmed(self, store: StudyStore, summary: Summary) -> bool:  # noqa: ARG002  the summary says it all
        """Whether the preferred point, if there is one, has enough pairs with the default."""
        return not isinstance(summary, FrontSummary) or summary.is_judged(self.study.verdict)

    def needs_tuning(self, summary: Summary) -> bool:  # noqa: ARG002  it has no incumbent that trials lose to
        """Return False: trials of a trade-off are not stopped for one incumbent."""
        return False


@dataclass(frozen=True)
class Table:
    """The goal of `[decisions]`: the best setting for each context, compared with the default there."""

    study: StudyFile
    section: DecisionsSection

    def confirm(self, store: StudyStore, manager: RunManager) -> None:
        """Compare the settings that the table recommends with the default, context by context."""
        confirm_table(store, manager, self.study, self.section)

    def is_confirmed(self, store: StudyStore, summary: Summary) -> bool:  # noqa: ARG002  the table is made from the runs
        """Whether every recommended setting that `verdict_runs` allows was compared with the default."""
        return is_confirmed(store, self.study, self.section)

    def needs_tuning(self, summary: Summary) -> bool:
        """Whether a stopped trial must run again, because the trial that it lost to breaks a limit."""
        return _has_capped_candidate(self.study, summary)


def _has_capped_candidate(study: StudyFile, summary: Summary) -> bool:
    again = RepeatScheduler(study.repeats).deserving(summary.standings) if study.limits else []
    return any(trial.state is State.CAPPED for trial in again)
