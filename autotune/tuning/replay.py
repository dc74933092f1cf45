"""Replaying: how good a smaller budget would have been, asked of recorded measurements.

Tuning is replayed once for every seed, with the greatest budget and without a verdict. What a smaller budget would have
found is read from what was known when the first trial beyond it began: a trial's race is over before the next begins.
What was found is judged by the median of everything that was recorded of it, not by the runs that chose it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autotune.display.console import Display
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
from autotune.tuning.simulated import simulated_runs
from objectives.base import Metric
from objectives.replay.objective import ReplayObjective
from objectives.replay.table import RecordedTable
from spaces.parameters.problem import Problem

_GOOD = 1.05
_S_PER_H = 3600.0


@dataclass(frozen=True)
class BudgetOutcome:
    """What one seed had found with one budget: how much worse than the best recorded, as a ratio from 1 up.

    `ratio` is None where nothing that works had been found. `core_s` are the simulated core-seconds until then.
    """

    budget: int
    trials: int
    ratio: float | None
    core_s: float


@dataclass(frozen=True)
class BudgetRow:
    """What a budget gives, over all seeds: quartiles of the ratio, and the median of the cost.

    `within` is the share of the seeds whose ratio is at most 1.05; `found` how many had found anything that works.
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
        AutotuneError: the table cannot be replayed so.
    """
    if study.tradeoff is not None:
        msg = (
            "a trade-off has no best configuration that budgets could be judged by: take [tradeoff] out; "
            "`autotune study` replays it as it is, and `autotune report` shows how its front grew"
        )
        raise AutotuneError(Problem(msg, "tradeoff"))
    wanted = sorted(set(budgets))
    outcomes = [list(_replayed(study, prepared, wanted, seed, display)) for seed in range(seeds)]
    return [_row([by_budget[index] for by_budget in outcomes]) for index in range(len(wanted))]


def table_of(prepared: Prepared) -> RecordedTable:
    """Return the table that a study replays.

    Raises:
        AutotuneError: it replays none.
    """
    objective = prepared.plan.objective
    if not isinstance(objective, ReplayObjective):
        msg = f"study {prepared.study.name!r} is no replay: its objective is {prepared.study.objective!r}"
        raise AutotuneError(msg)
    return objective.table


def limits_in(study: StudyFile, prepared: Prepared) -> Limits:
    """Return the limits that what is found must keep."""
    return limits_of(study.limits, prepared.plan.objective.metrics)


def best_recorded(table: RecordedTable, limits: Limits) -> float | None:
    """Return the best median of all recorded configurations that keep the limits; None if there is none."""
    return table.best_of(lambda medians: not breaches(limits, medians))


class SilentDisplay:
    """A display that shows nothing: hundreds of replayed trials are no news."""

    def line(self, text: str) -> None:
        """Show nothing."""

    def waits(self, text: str) -> None:
        """Show nothing."""

    def update(self, status: object) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


def _replayed(
    study: StudyFile, prepared: Prepared, budgets: Sequence[int], seed: int, display: Display
) -> Iterator[BudgetOutcome]:
    table, plan = table_of(prepared), prepared.plan
    sampler = study.sampler.model_copy(update={"seed": seed})
    seeded = study.model_copy(update={"sampler": sampler, "budget": BudgetSection(trials=budgets[-1])})
    limits = limits_in(study, prepared)
    store = StudyStore.in_memory(prepared.definition)
    asker = Asker(store, sampler_of(prepared.space, sampler))
    with simulated_runs(plan, seeded, SilentDisplay()) as manager:
        TuningLoop(asker, manager, seeded).tune()
    display.line(f"seed {seed}: {len(store.trials())} trials replayed")
    runs = store.runs()
    for budget in budgets:
        yield _found(known_within(runs, budget), budget, table, study, limits)


def known_within(runs: Sequence[Run], budget: int) -> list[Run]:
    """Return the runs, in the order in which they ended, before the first of the trial that is beyond a budget."""
    seen: set[int] = set()
    for index, run in enumerate(runs):
        if run.trial is not None:
            seen.add(run.trial)
        if len(seen) > budget:
            return list(runs[:index])
    return list(runs)


def _found(runs: Sequence[Run], budget: int, table: RecordedTable, study: StudyFile, limits: Limits) -> BudgetOutcome:
    counted = [run for run in runs if run.trial is not None and run.series.is_tuning]
    numbers = list(dict.fromkeys(run.trial for run in counted if run.trial is not None))
    trials = [
        TrialRecord.of(number, ran[0].configuration, ran, settled=True)
        for number in numbers
        if (ran := [run for run in counted if run.trial == number])
    ]
    metric, statistic = table.metric, study.repeats.statistic
    best = Standings.of(trials, metric, statistic, limits=KeptLimits(limits, statistic)).incumbent
    medians = table.true_metrics(best.configuration) if best is not None else {}
    # What looked as if it kept the limits, and does not by all that was recorded, is no find.
    truth = None if breaches(limits, medians) else medians.get(metric.name)
    ratio = _ratio(truth, best_recorded(table, limits), metric)
    return BudgetOutcome(budget, len(trials), ratio, sum(run.core_s for run in runs))


def _ratio(value: float | None, best: float | None, metric: Metric) -> float | None:
    """Return how many times worse a value is than the best; 1 for the best, in either direction."""
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
