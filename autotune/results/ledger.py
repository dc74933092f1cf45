"""The ledger: what a study cost in core-seconds, what it did not have to spend, and when it has paid for itself."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean, median
from typing import Any

from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord
from launchers.meters.figures import GPU_BUSY, GPU_ENERGY

# From here on whole core-seconds have three digits.
_WHOLE = 99.95
_HOUR_S = 3600.0
# Rounding makes what is all of it a little less.
_ALL = 0.995


@dataclass(frozen=True)
class HeldTime:
    """For how long something was held, and for how long of that it was busy."""

    held_s: float = 0.0
    busy_s: float = 0.0

    @property
    def share(self) -> float | None:
        """The share of the time in which it was busy; None where it was not held."""
        # Clocks are read one after the other.
        return min(1.0, self.busy_s / self.held_s) if self.held_s else None

    def text(self, unit: str) -> str:
        """Say it: `held 60 core-seconds, busy 24 (40%)`."""
        in_hours = self.held_s >= _HOUR_S
        busy = min(self.busy_s, self.held_s) / (_HOUR_S if in_hours else 1.0)
        return f"held {_time(self.held_s, unit)}, busy {busy:.3g} ({self.share or 0.0:.0%})"


@dataclass(frozen=True)
class Ledger:
    """Core-seconds, by what they were spent on; a job's cores count for as long as it ran.

    `saved_by_caps` is what capped runs would have cost on, as far as their own pace
    told; `spared_by_racing` is what it would have cost to repeat every configuration as often as the most doubtful may
    be. `saved_per_run` is what one production run costs less with the winner than with the default; None where that is
    unknown. `cores` are core-seconds, and `gpus` GPU-seconds, of those jobs whose use of them is known: a core is busy
    where it computes, or waits without rest, as MPI does. `gpu_s` are all GPU-seconds for which cards were held;
    `gpu_energy_j` is what cards took in the jobs whose meters told it, in `gpu_energy_s` of these; None where none did.
    """

    first_runs: float = 0.0
    repeats: float = 0.0
    baseline: float = 0.0
    capped: float = 0.0
    failed: float = 0.0
    comparisons: float = 0.0
    gpu_s: float = 0.0
    saved_by_caps: float = 0.0
    spared_by_racing: float = 0.0
    saved_per_run: float | None = None
    cores: HeldTime = HeldTime()
    gpus: HeldTime = HeldTime()
    gpu_energy_j: float | None = None
    gpu_energy_s: float = 0.0

    @property
    def busy_share(self) -> float | None:
        """The share of the time for which cores were held in which they were busy; None where that is not known."""
        return self.cores.share

    @property
    def purposes(self) -> dict[str, float]:
        """The core-seconds by what they were spent for."""
        return {
            "first runs": self.first_runs,
            "repeats": self.repeats,
            "baseline": self.baseline,
            "capped runs": self.capped,
            "failed runs": self.failed,
            "comparisons": self.comparisons,
        }

    @property
    def spent(self) -> float:
        """All core-seconds."""
        return sum(self.purposes.values())

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
    def used(self) -> tuple[tuple[str, str], ...]:
        """How long cores and cards were held, and how long busy, as (label, text); without what is not known."""
        cores = () if self.busy_share is None else (("cores", self.cores.text("core")),)
        return cores if not self.gpu_s else (*cores, ("GPUs", self._gpus_text()))

    def _gpus_text(self) -> str:
        held = f"held {_time(self.gpu_s, 'GPU')}"
        if self.gpus.share is None:
            text = f"{held}, how busy is not known: no meter told it"
        elif self.gpus.held_s < _ALL * self.gpu_s:
            text = f"{held}; where meters told it, {self.gpus.text('GPU')}"
        else:
            text = self.gpus.text("GPU")
        if self.gpu_energy_j is None:
            return text
        partly = f" in {_time(self.gpu_energy_s, 'GPU')}" if self.gpu_energy_s < _ALL * self.gpu_s else ""
        return f"{text}, and took {_energy(self.gpu_energy_j)}{partly}"

    @property
    def no_gain(self) -> str:
        """Why the study never pays for itself."""
        if not self.saved_per_run:
            return "what is to be used costs as many core-seconds as the default"
        return f"the winner costs {self.difference} core-seconds more a run than the default"

    def text(self) -> str:
        """Describe it in a few lines."""
        spent = ", ".join(f"{name} {value:.0f}" for name, value in self.purposes.items() if value > 0.0)
        lines = [f"spent: {self.spent:.0f} core-seconds ({spent})"]
        lines += [f"{name}: {text}" for name, text in self.used]
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
        shares = {"busy_share": self.busy_share, "gpu_busy_share": self.gpus.share}
        return asdict(self) | shares | {"spent": self.spent, "pays_after": self.pays_after}


def ledger_of(runs: Sequence[Run], trials: Sequence[TrialRecord], winner: int | None, max_runs: int) -> Ledger:
    """Add up the runs of a study whose first trial is the default configuration's.

    `winner` is the trial that won; None while none did. What a watch spends later is not the study's.
    """
    runs = [run for run in runs if run.series.kind is not SeriesKind.WATCH]
    default = min((trial.number for trial in trials), default=0)
    spent = dict.fromkeys(("first_runs", "repeats", "baseline", "capped", "failed", "comparisons"), 0.0)
    seen: set[int | None] = set()
    for run in runs:
        spent[_entry(run, default, seen)] += run.core_s
        if run.series.is_tuning:
            seen.add(run.trial)
    told = [(_gpu_s(run), run.outcome.metered) for run in runs if _gpu_s(run)]
    energies = [(held_s, metered[GPU_ENERGY]) for held_s, metered in told if GPU_ENERGY in metered]
    return Ledger(
        **spent,
        gpu_s=sum(_gpu_s(run) for run in runs),
        saved_by_caps=sum(_saved(run) for run in runs),
        spared_by_racing=sum(_spared(trial, max_runs) for trial in trials if trial.number != default),
        saved_per_run=_saved_per_run(runs, default, winner),
        cores=_cores(runs),
        gpus=_gpus(told),
        gpu_energy_j=sum(joules for _, joules in energies) if energies else None,
        gpu_energy_s=sum(held_s for held_s, _ in energies),
    )


def _cores(runs: Sequence[Run]) -> HeldTime:
    # Of a job on several nodes only the first one's processor time is known; a recorded run has none.
    known = [run for run in runs if run.outcome.usage.cpu_s and run.job.get("resources", {}).get("nodes", 1) == 1]
    return HeldTime(sum(run.core_s for run in known), sum(_busy_s(run) for run in known))


def _busy_s(run: Run) -> float:
    """Return the core-seconds in which a run's cores were busy: both hardware threads of a core are one of it."""
    threads = int(run.job.get("resources", {}).get("threads_per_core", 1))
    return min(run.core_s, run.outcome.usage.cpu_s / threads)


def _gpus(told: Sequence[tuple[float, Mapping[str, float]]]) -> HeldTime:
    """Return the use of cards, of the jobs whose meters told it: GPU-seconds that each held, and its figures."""
    busy = [(held_s, metered[GPU_BUSY]) for held_s, metered in told if GPU_BUSY in metered]
    return HeldTime(sum(held_s for held_s, _ in busy), sum(held_s * share for held_s, share in busy))


def _gpu_s(run: Run) -> float:
    """Return the GPU-seconds that a run held: a machine with fewer cards than were wanted gave what it has.

    The card without a name stands for all that a program finds, where nothing lists them.
    """
    resources = run.job.get("resources", {})
    named = sum(1 for card in resources.get("cards", ()) if card.get("name"))
    return float((named or resources.get("gpus", 0)) * run.outcome.usage.elapsed_s)


def _entry(run: Run, default: int, seen: set[int | None]) -> str:
    if run.series.is_comparison:
        return "comparisons"
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
    uncounted = {SeriesKind.WARM_UP, SeriesKind.ASIDE}

    def cost(number: int) -> float | None:
        costs = [
            run.core_s
            for run in runs
            if run.trial == number and run.outcome.complete and run.series.kind not in uncounted and run.steps is None
        ]
        return median(costs) if costs else None

    before, after = cost(default), cost(winner) if winner is not None else None
    return None if before is None or after is None else before - after


def _time(seconds: float, unit: str) -> str:
    """Say a time of cores or cards: `58 core-seconds`, `3.1 GPU-hours`."""
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:.3g} {unit}-hours"
    return f"{seconds:,.0f} {unit}-seconds" if seconds >= _WHOLE else f"{seconds:.3g} {unit}-seconds"


def _energy(joules: float) -> str:
    if joules >= 3.6e5:
        return f"{joules / 3.6e6:.3g} kWh"
    return f"{joules / 1000:.3g} kJ" if joules >= 999.5 else f"{joules:.3g} J"
