"""The ledger: what a study cost in core-seconds, what it did not have to spend, and when it has paid for itself."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean, median
from typing import Any

from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord

# From here on whole core-seconds have three digits.
_WHOLE = 99.95


@dataclass(frozen=True)
class CostAccount:
    """Core-seconds, by what they were spent on; a job's cores count for as long as it ran.

    `short_runs` stood for long ones. `saved_by_caps` is what capped runs would have cost on, as far as their own pace
    told; `spared_by_racing` is what it would have cost to repeat every configuration as often as the most doubtful may
    be. `saved_per_run` is what one production run costs less with the winner than with the default; None where that is
    unknown. `busy_share` is the share of the time for which they were held in which cores computed, or waited without
    rest, as MPI does, of the jobs whose processor time is known; None where it is of none.
    """

    first_runs: float = 0.0
    short_runs: float = 0.0
    repeats: float = 0.0
    baseline: float = 0.0
    capped: float = 0.0
    failed: float = 0.0
    comparisons: float = 0.0
    gpu_s: float = 0.0
    saved_by_caps: float = 0.0
    spared_by_racing: float = 0.0
    saved_per_run: float | None = None
    busy_share: float | None = None

    @property
    def spent(self) -> float:
        """All core-seconds."""
        own = self.first_runs + self.short_runs + self.repeats + self.baseline
        return own + self.capped + self.failed + self.comparisons

    @property
    def pays_after(self) -> int | None:
        """After how many production runs the study has paid for itself; None if it never does."""
        if self.saved_per_run is None or self.saved_per_run <= 0.0:
            return None
        runs = ceil(self.spent / self.saved_per_run)
        # 8.4 / 0.6 is a little more than 14.
        return runs - 1 if runs and (runs - 1) * self.saved_per_run >= self.spent else runs

    @property
    def difference(self) -> str:
        """The difference in core-seconds between a production run with the winner and one with the default, as text."""
        value = abs(self.saved_per_run or 0.0)
        return f"{value:,.0f}" if value >= _WHOLE else f"{value:.3g}"

    @property
    def no_gain(self) -> str:
        """Why the study never pays for itself."""
        if not self.saved_per_run:
            return "the winner costs as many core-seconds as the default"
        return f"the winner costs {self.difference} core-seconds more a run than the default"

    def text(self) -> str:
        """Describe it in a few lines."""
        parts = {
            "first runs": self.first_runs,
            "short runs": self.short_runs,
            "repeats": self.repeats,
            "baseline": self.baseline,
            "capped runs": self.capped,
            "failed runs": self.failed,
            "comparisons": self.comparisons,
        }
        spent = ", ".join(f"{name} {value:.0f}" for name, value in parts.items() if value > 0.0)
        lines = [f"spent: {self.spent:.0f} core-seconds ({spent})"]
        if self.busy_share is not None:
            lines.append(f"busy: {self.busy_share:.0%} of the time that cores were held")
        if self.gpu_s:
            lines.append(f"GPUs: {self.gpu_s:.0f} GPU-seconds")
        saved = [
            *([f"at least {self.saved_by_caps:.0f} by stopping runs that had lost"] if self.saved_by_caps >= 1 else []),
            *([f"{self.spared_by_racing:.0f} by not repeating what was clear"] if self.spared_by_racing >= 1 else []),
        ]
        if saved:
            lines.append(f"saved, in core-seconds: {', '.join(saved)}")
        if self.pays_after is not None:
            lines.append(
                f"paid for after {self.pays_after} production runs like these, "
                f"each of which saves {self.difference} core-seconds"
            )
        elif self.saved_per_run is not None:
            lines.append(f"never paid for: {self.no_gain}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return asdict(self) | {"spent": self.spent, "pays_after": self.pays_after}


def cost_account(runs: Sequence[Run], trials: Sequence[TrialRecord], winner: int | None, max_runs: int) -> CostAccount:
    """Add up the runs of a study whose first trial is the default configuration's.

    `winner` is the trial that won; None while none did. What a watch spends later is not the study's.
    """
    runs = [run for run in runs if run.series.kind is not SeriesKind.WATCH]
    default = min((trial.number for trial in trials), default=0)
    spent = dict.fromkeys(("first_runs", "short_runs", "repeats", "baseline", "capped", "failed", "comparisons"), 0.0)
    seen: set[int | None] = set()
    for run in runs:
        spent[_entry(run, default, seen)] += run.core_s
        if run.series.is_tuning:
            seen.add(run.trial)
    return CostAccount(
        **spent,
        gpu_s=sum(run.job.get("resources", {}).get("gpus", 0) * run.outcome.usage.elapsed_s for run in runs),
        saved_by_caps=sum(_saved(run) for run in runs),
        spared_by_racing=sum(_spared(trial, max_runs) for trial in trials if trial.number != default),
        saved_per_run=_saved_per_run(runs, default, winner),
        busy_share=_busy_share(runs),
    )


def _busy_share(runs: Sequence[Run]) -> float | None:
    # Of a job on several nodes only the first one's processor time is known; a recorded run has none.
    known = [run for run in runs if run.outcome.usage.cpu_s and run.job.get("resources", {}).get("nodes", 1) == 1]
    held_s = sum(run.core_s for run in known)
    return min(1.0, sum(run.outcome.usage.cpu_s for run in known) / held_s) if held_s else None


def _entry(run: Run, default: int, seen: set[int | None]) -> str:
    if run.series.is_comparison:
        return "comparisons"
    if run.series.kind is SeriesKind.SHORT:
        return "short_runs"
    if run.outcome.capped:
        return "capped"
    if run.series.kind is SeriesKind.ASIDE or (run.outcome.failure is not None and run.series.is_tuning):
        return "failed"
    if run.trial == default:
        return "baseline"
    # A resumed segment repeats nothing.
    return "repeats" if run.trial in seen and run.steps is None else "first_runs"


def _saved(run: Run) -> float:
    # Where a capped run would have gone is known only from its own forecast.
    forecast = run.outcome.details.get("forecast")
    if not run.outcome.capped or forecast is None:
        return 0.0
    return run.cores * max(0.0, float(forecast["elapsed_s"]) - run.outcome.usage.elapsed_s)


def _spared(trial: TrialRecord, max_runs: int) -> float:
    # A program that works in steps is not run again in any case.
    if trial.state is not State.COMPLETE or not trial.settled or trial.runs[-1].of is not None:
        return 0.0
    return max(0, max_runs - len(trial.runs)) * fmean(run.core_s for run in trial.runs)


def _saved_per_run(runs: Sequence[Run], default: int, winner: int | None) -> float | None:
    uncounted = {SeriesKind.WARM_UP, SeriesKind.SHORT, SeriesKind.ASIDE}

    def cost(number: int) -> float | None:
        costs = [
            run.core_s
            for run in runs
            if run.trial == number and run.outcome.complete and run.series.kind not in uncounted and run.steps is None
        ]
        return median(costs) if costs else None

    before, after = cost(default), cost(winner) if winner is not None else None
    return None if before is None or after is None else before - after
