"""The ledger: the core-seconds that a study spent and saved, and after how many production runs it has paid off."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from statistics import fmean, median
from typing import Any

from autotune.records.series import SeriesKind
from autotune.records.study import Run, State, TrialRecord
from launchers.meters.figures import GPU_BUSY, GPU_ENERGY

# From this value on, whole core-seconds have three digits.
_WHOLE = 99.95
_HOUR_S = 3600.0
# A decision table is confirmed context by context; each is a cell.
_VERDICT = frozenset({SeriesKind.SELECT, SeriesKind.VERDICT, SeriesKind.DUET, SeriesKind.CELL})
# Rounding may make a complete share a little less than 1.
_ALL = 0.995


@dataclass(frozen=True)
class HeldTime:
    """How long cores or cards were held, and how long of that they were busy, in seconds."""

    held_s: float = 0.0
    busy_s: float = 0.0

    @property
    def share(self) -> float | None:
        """The share of the time in which they were busy; None if they were not held."""
        # The two clocks are not read at the same moment, so the busy time may exceed the held time a little.
        return min(1.0, self.busy_s / self.held_s) if self.held_s else None

    def text(self, unit: str) -> str:
        """Return the words, such as `held 60 core-seconds, busy 24 (40%)`."""
        in_hours = self.held_s >= _HOUR_S
        busy = min(self.busy_s, self.held_s) / (_HOUR_S if in_hours else 1.0)
        return f"held {_time(self.held_s, unit)}, busy {busy:.3g} ({self.share or 0.0:.0%})"


@dataclass(frozen=True)
class Ledger:
    """The core-seconds of a study by purpose; the cores of a job count for as long as it ran.

    Attributes:
        first_runs: First runs of configurations.
        repeats: Further runs of the same configurations.
        baseline: Runs of the default.
        capped: Runs that were stopped because they had lost.
        failed: Runs that failed.
        aside: Runs that worked and do not count, because other processes disturbed them or they were made again.
        verdict: Runs that chose the winner and compared it with the default.
        comparisons: Runs of other comparisons: ablations, sweeps, checks on other inputs.
        gpu_s: All GPU-seconds for which cards were held.
        saved_by_caps: The further cost of capped runs, as forecast from their own pace.
        spared_by_racing: The cost of repeating every configuration as often as the study allows, minus the actual cost.
        saved_per_run: How much less one production run costs with the winner than with the default; None if unknown.
        cores: The use of cores, for jobs where it is known. A core that polls, as MPI does, counts as busy.
        gpus: The use of cards in GPU-seconds, for jobs where it is known.
        gpu_energy_j: The energy of cards in joules, for jobs with meters; None without any.
        gpu_energy_s: The GPU-seconds of these jobs.
    """

    first_runs: float = 0.0
    repeats: float = 0.0
    baseline: float = 0.0
    capped: float = 0.0
    failed: float = 0.0
    aside: float = 0.0
    verdict: float = 0.0
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
        """The share of the held time in which cores were busy; None if it is not known."""
        return self.cores.share

    @property
    def purposes(self) -> dict[str, float]:
        """The core-seconds by purpose."""
        return {
            "first runs": self.first_runs,
            "repeats": self.repeats,
            "baseline": self.baseline,
            "capped runs": self.capped,
            "failed runs": self.failed,
            "runs set aside": self.aside,
            "the verdict": self.verdict,
            "other comparisons": self.comparisons,
        }

    @property
    def spent(self) -> float:
        """All core-seconds."""
        return sum(self.purposes.values())

    @property
    def pays_after(self) -> int | None:
        """The number of production runs after which the study has paid for itself; None if it never does."""
        if self.saved_per_run is None or self.saved_per_run <= 0.0:
            return None
        runs = ceil(self.spent / self.saved_per_run)
        # Correct rounding errors: 8.4 / 0.6 is a little more than 14.
        return runs - 1 if runs and (runs - 1) * self.saved_per_run >= self.spent else runs

    @property
    def difference(self) -> str:
        """The difference in core-seconds between a production run with the winner and one with the default, as text."""
        value = abs(self.saved_per_run or 0.0)
        return f"{value:,.0f}" if value >= _WHOLE else f"{value:.3g}"

    @property
    def used(self) -> tuple[tuple[str, str], ...]:
        """(label, text) of how long cores and cards were held and busy, as far as it is known."""
        cores = () if self.busy_share is None else (("cores", self.cores.text("core")),)
        return cores if not self.gpu_s else (*cores, ("GPUs", self._gpus_text()))

    def _gpus_text(self) -> str:
        held = f"held {_time(self.gpu_s, 'GPU')}"
        if self.gpus.share is None:
            text = f"{held}; how busy they were is not known: no meter measured it"
        elif self.gpus.held_s < _ALL * self.gpu_s:
            text = f"{held}; where meters measured it, {self.gpus.text('GPU')}"
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
            return "the configuration to use costs as many core-seconds as the default"
        return f"the winner costs {self.difference} core-seconds more a run than the default"

    def text(self) -> str:
        """Return the ledger in a few lines."""
        share = {"the verdict": f" ({self.verdict / self.spent:.0%})"} if self.verdict else {}
        spent = ", ".join(
            f"{name} {value:.0f}{share.get(name, '')}" for name, value in self.purposes.items() if value > 0.0
        )
        lines = [f"spent: {self.spent:.0f} core-seconds{f' ({spent})' if spent else ''}"]
        lines += [f"{name}: {text}" for name, text in self.used]
        saved = [
            *([f"at least {self.saved_by_caps:.0f} by stopping runs that had lost"] if self.saved_by_caps >= 1 else []),
            *([f"{self.spared_by_racing:.0f} by not repeating clear results"] if self.spared_by_racing >= 1 else []),
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
    """Add up the runs of a study; the cost of later checks by a watch is left out.

    Args:
        runs: All runs of the study.
        trials: Its trials; the first is that of the default.
        winner: The number of the trial that won; None without a winner.
        max_runs: The largest number of runs of a trial.
    """
    runs = [run for run in runs if run.series.kind is not SeriesKind.WATCH]
    default = min((trial.number for trial in trials), default=0)
    spent: dict[str, float] = defaultdict(float)
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
        saved_by_caps=sum(_seconds_saved(run) for run in runs),
        spared_by_racing=sum(_seconds_spared(trial, max_runs) for trial in trials if trial.number != default),
        saved_per_run=_gain_per_run(runs, default, winner),
        cores=_cores(runs),
        gpus=_gpus(told),
        gpu_energy_j=sum(joules for _, joules in energies) if energies else None,
        gpu_energy_s=sum(held_s for held_s, _ in energies),
    )


def _cores(runs: Sequence[Run]) -> HeldTime:
    # For a job on several nodes only the processor time on the first node is known; recorded runs have none.
    known = [run for run in runs if run.outcome.usage.cpu_s and run.job.get("resources", {}).get("nodes", 1) == 1]
    return HeldTime(sum(run.core_s for run in known), sum(_busy_s(run) for run in known))


def _busy_s(run: Run) -> float:
    """Return the core-seconds in which a run's cores were busy; the hardware threads of a core count as one."""
    threads = int(run.job.get("resources", {}).get("threads_per_core", 1))
    return min(run.core_s, run.outcome.usage.cpu_s / threads)


def _gpus(told: Sequence[tuple[float, Mapping[str, float]]]) -> HeldTime:
    """Return the use of cards from the (GPU-seconds held, metered figures) of jobs with meters."""
    busy = [(held_s, metered[GPU_BUSY]) for held_s, metered in told if GPU_BUSY in metered]
    return HeldTime(sum(held_s for held_s, _ in busy), sum(held_s * share for held_s, share in busy))


def _gpu_s(run: Run) -> float:
    """Return the GPU-seconds that a run held, by the cards that it got, which may be fewer than it asked for.

    If nothing lists the cards, a card without a name stands for all of them; the number asked for counts then.
    """
    resources = run.job.get("resources", {})
    named = sum(1 for card in resources.get("cards", ()) if card.get("name"))
    return float((named or resources.get("gpus", 0)) * run.outcome.usage.elapsed_s)


def _entry(run: Run, default: int, seen: set[int | None]) -> str:
    if run.series.kind is SeriesKind.ASIDE:
        return "aside" if run.is_set_aside else "failed"
    if run.series.is_comparison:
        return "verdict" if run.series.kind in _VERDICT else "comparisons"
    if run.outcome.capped:
        return "capped"
    if run.outcome.failure is not None and run.series.is_tuning:
        return "failed"
    if run.trial == default:
        return "baseline"
    # A resumed segment is not a repeat.
    return "repeats" if run.trial in seen and run.steps is None else "first_runs"


def _seconds_saved(run: Run) -> float:
    # Only the run's own forecast says how long it would have taken.
    forecast = run.outcome.details.get("forecast")
    if not run.outcome.capped or forecast is None:
        return 0.0
    return run.cores * max(0.0, float(forecast["elapsed_s"]) - run.outcome.usage.elapsed_s)


def _seconds_spared(trial: TrialRecord, max_runs: int) -> float:
    # Programs that work in steps are never repeated, so racing spares nothing.
    if trial.state is not State.COMPLETE or not trial.settled or trial.runs[-1].of is not None:
        return 0.0
    return max(0, max_runs - len(trial.runs)) * fmean(run.core_s for run in trial.runs)


def _gain_per_run(runs: Sequence[Run], default: int, winner: int | None) -> float | None:
    if any(part.get("server") for run in runs for part in (run.job, *run.job.get("parts", ()))):
        return None  # a server keeps running in production, so the time of its loads says nothing
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
    """Return a time of cores or cards in words: `58 core-seconds`, `3.1 GPU-hours`."""
    if seconds >= _HOUR_S:
        return f"{seconds / _HOUR_S:.3g} {unit}-hours"
    return f"{seconds:,.0f} {unit}-seconds" if seconds >= _WHOLE else f"{seconds:.3g} {unit}-seconds"


def _energy(joules: float) -> str:
    if joules >= 3.6e5:
        return f"{joules / 3.6e6:.3g} kWh"
    return f"{joules / 1000:.3g} kJ" if joules >= 999.5 else f"{joules:.3g} J"
