"""Replay: how good a smaller budget would have been, computed from recorded measurements.

Each seed is tuned once, with the greatest budget and without a verdict. The runs that ended before the first trial
beyond a smaller budget tell what that budget would have found, because the race of a trial is over before the next
trial begins. A configuration that was found is judged by the median of all its recorded runs, not by the runs that
chose it.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autotune.display.console import Display, NoDisplay
from autotune.errors import AutotuneError
from autotune.planning.prepare import Prepared
from autotune.records.limit import Limits, breaches
from autotune.records.study import Run, TrialRecord
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.statistics.kept_limits import KeptLimits
from autotune.statistics.standings import Standings
from autotune.storage.study_store import StudyStore
from autotune.studyfile import BudgetSection, StudyFile
from autotune.studyfile.limits import limits_of
from autotune.tuning.loop import TuningLoop
from autotune.tuning.simulated_runs import simulated_runs
from objectives.base import Metric
from objectives.replay.objective import ReplayObjective
from objectives.replay.table import RecordedTable
from spaces.parameters.problem import Problem

_GOOD = 1.05
_S_PER_H = 3600.0


@dataclass(frozen=True)
class BudgetOutcome:
    """The result of one seed with one budget.

    Attributes:
        budget: The most trials allowed.
        trials: The trials that were made.
        ratio: How many times worse the configuration found is than the best recorded one, from 1 up; None if no
            configuration that works was found.
        core_s: Simulated core-seconds spent.
    """

    budget: int
    trials: int
    ratio: float | None
    core_s: float


@dataclass(frozen=True)
class BudgetRow:
    """The results of all seeds with one budget.

    Attributes:
        budget: The most trials allowed.
        trials: Median of the trials made.
        lower: First quartile of the ratio (see `BudgetOutcome`).
        median: Median of the ratio.
        upper: Third quartile of the ratio.
        within: Share of the seeds whose ratio is at most 1.05.
        found: Number of seeds that found a configuration that works.
        seeds: Number of seeds.
        core_h: Median of the simulated core-hours.
    """

    budget: int
    trials: float
    lower: float | None
    median: float | None
    upper: float | None
    within: float
    found: int
    seeds: int
    core_h: float

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self)


def budget_rows(
    study: StudyFile, prepared: Prepared, budgets: Sequence[int], seeds: int, display: Display
) -> list[BudgetRow]:
    """Replay the tuning of `study` with the seeds 0, 1, ..., and return a row for each of the `budgets`.

    Raises:
        AutotuneError: The study looks for a trade-off, or replays no table.
    """
    if study.tradeoff is not None:
        msg = (
            "budgets are judged by the best configuration, and a trade-off has none: remove [tradeoff]; "
            "`autotune study` replays it as it is, and `autotune report` shows how its front grew"
        )
        raise AutotuneError(Problem(msg, "tradeoff"))
    wanted = sorted(set(budgets))
    table, limits = table_of(prepared), limits_in(study, prepared)
    judge = _Judge(study, table, limits, best_recorded(table, limits))
    outcomes = []
    for seed in range(seeds):
        runs = _replay_seed(study, prepared, wanted[-1], seed)
        display.line(f"seed {seed}: {len({run.trial for run in runs} - {None})} trials replayed")
        outcomes.append([judge.outcome(runs_within_budget(runs, budget), budget) for budget in wanted])
    return [_row([by_budget[index] for by_budget in outcomes]) for index in range(len(wanted))]


def table_of(prepared: Prepared) -> RecordedTable:
    """Return the table that a study replays.

    Raises:
        AutotuneError: The study is not a replay.
    """
    objective = prepared.plan.objective
    if not isinstance(objective, ReplayObjective):
        msg = f"study {prepared.study.name!r} is not a replay: its objective is {prepared.study.objective!r}"
        raise AutotuneError(msg)
    return objective.table


def limits_in(study: StudyFile, prepared: Prepared) -> Limits:
    """Return the limits that a winner of the study must keep."""
    return limits_of(study.limits, prepared.plan.objective.metrics)


def best_recorded(table: RecordedTable, limits: Limits) -> float | None:
    """Return the best median of the recorded configurations that keep the limits; None if all break one."""
    return table.best_of(lambda medians: not breaches(limits, medians))


def _replay_seed(study: StudyFile, prepared: Prepared, trials: int, seed: int) -> list[Run]:
    """Return the runs of a tuning with a seed and at most `trials` trials."""
    sampler = study.sampler.model_copy(update={"seed": seed})
    seeded = study.model_copy(update={"sampler": sampler, "budget": BudgetSection(trials=trials)})
    store = StudyStore.in_memory(prepared.definition)
    asker = Asker(store, sampler_of(prepared.space, sampler))
    with simulated_runs(prepared.plan, seeded, NoDisplay()) as manager:
        TuningLoop(asker, manager, seeded).tune()
    return store.runs()


def runs_within_budget(runs: Sequence[Run], budget: int) -> list[Run]:
    """Return the `runs`, in the order in which they ended, before the first run of the trial beyond the budget."""
    seen: set[int] = set()
    for index, run in enumerate(runs):
        if run.trial is not None:
            seen.add(run.trial)
        if len(seen) > budget:
            return list(runs[:index])
    return list(runs)


@dataclass(frozen=True)
class _Judge:
    """Judges what budgets found, by all recorded runs of a table; `best` is the best that keeps the limits."""

    study: StudyFile
    table: RecordedTable
    limits: Limits
    best: float | None

    def outcome(self, runs: Sequence[Run], budget: int) -> BudgetOutcome:
        """Return what some runs, those of a budget, have found."""
        counted = [run for run in runs if run.trial is not None and run.series.is_tuning]
        numbers = list(dict.fromkeys(run.trial for run in counted if run.trial is not None))
        trials = [
            TrialRecord.of(number, ran[0].configuration, ran, settled=True)
            for number in numbers
            if (ran := [run for run in counted if run.trial == number])
        ]
        metric, statistic = self.table.metric, self.study.repeats.statistic
        best = Standings.of(trials, metric, statistic, limits=KeptLimits(self.limits, statistic)).incumbent
        medians = self.table.true_metrics(best.configuration) if best is not None else {}
        # The winner seemed to keep the limits. If the median of all its recorded runs breaks one, nothing was found.
        truth = None if breaches(self.limits, medians) else medians.get(metric.name)
        ratio = _ratio(truth, self.best, metric)
        return BudgetOutcome(budget, len(trials), ratio, sum(run.core_s for run in runs))


def _ratio(value: float | None, best: float | None, metric: Metric) -> float | None:
    """Return how many times worse a value is than the best, in the metric's direction; 1 for the best itself."""
    if value is None or best is None or not (value > 0.0 and best > 0.0):
        return None
    return best / value if metric.direction == "maximize" else value / best


def _row(outcomes: Sequence[BudgetOutcome]) -> BudgetRow:
    ratios = [outcome.ratio for outcome in outcomes if outcome.ratio is not None]
    lower, middle, upper = (float(x) for x in np.quantile(ratios, (0.25, 0.5, 0.75))) if ratios else (None,) * 3
    return BudgetRow(
        budget=outcomes[0].budget,
        trials=float(np.median([outcome.trials for outcome in outcomes])),
        lower=lower,
        median=middle,
        upper=upper,
        within=sum(ratio <= _GOOD for ratio in ratios) / len(outcomes),
        found=len(ratios),
        seeds=len(outcomes),
        core_h=float(np.median([outcome.core_s for outcome in outcomes])) / _S_PER_H,
    )
