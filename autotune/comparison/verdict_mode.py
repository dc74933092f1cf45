"""The mode of a verdict: whether its pairs are made in turns or side by side, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, log, log1p, sqrt
from statistics import fmean, variance

from autotune.comparison.duets import Duets, TooShortError
from autotune.comparison.rounds import ComparisonRounds, RoundTable
from autotune.comparison.time_left import run_s
from autotune.coordination.run_manager import RunManager
from autotune.held_folders import temporary_folder
from autotune.records.outcome import Outcome
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.statistics.verdict import PairsMode, Verdict
from autotune.studyfile import VerdictMode, VerdictSection
from launchers import Resources
from objectives.base import Context, Metric
from spaces import Configuration

# So many pairs of each mode tell whether the runs of a duet slow each other.
_TRIED = 4
# Of the longer run's time: with less in common, a duet shares little of what disturbs it.
_LEAST_ABREAST = 0.5


LEAST_RUNS = 3
"""With fewer nobody knows how much the runs differ anyway."""
# Of the two sides together: each is found to be slower by chance in half of 5 % of the studies.
_SURE = 0.975
_MOST_TAKEN = 0.99


@dataclass(frozen=True)
class Slowdown:
    """The logarithms of how many times as long a side takes in a duet as alone, each of one run by each.

    `variance` is that of one of them, as both sides together tell it, with so many `degrees` of freedom.
    """

    label: str
    logs: tuple[float, ...]
    variance: float
    degrees: int

    @property
    def middle(self) -> float:
        """The mean of the logarithms."""
        return fmean(self.logs)

    def is_more_than(self, hidden: float) -> bool:
        """Whether it is there beyond doubt; or looks like more than `hidden` (relative), and than its own error."""
        from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

        error = sqrt(self.variance / len(self.logs))
        sure = self.middle > error * float(stdtrit(self.degrees, _SURE))
        return sure or self.middle > max(log(1.0 + hidden), error)

    def words(self) -> str:
        """Say it, as in `default 1.204`."""
        return f"{self.label} {exp(self.middle):.3f}"


def slowdowns(alone: RoundTable, duets: RoundTable, metric: Metric, most: int) -> tuple[Slowdown, ...]:
    """Return that of each side, by its first `most` rounds alone and in duets; none if a side has too few runs."""
    found = []
    for side in range(len(alone.sides)):
        before, after = ([_cost(one, metric) for one in _first(table, side, most)] for table in (alone, duets))
        logs = [after_log - before_log for before_log, after_log in zip(before, after, strict=False)]
        if len(logs) < LEAST_RUNS:
            return ()
        found.append(tuple(logs))
    # Four runs of one side say little of how much they differ.
    degrees = sum(len(logs) - 1 for logs in found)
    pooled = sum((len(logs) - 1) * variance(logs) for logs in found) / degrees
    return tuple(Slowdown(side.label, logs, pooled, degrees) for side, logs in zip(alone.sides, found, strict=True))


def _first(table: RoundTable, side: int, most: int) -> Sequence[Outcome]:
    numbers = sorted({number for number, _ in table.runs})[:most]
    runs = [table.runs[number, side] for number in numbers if (number, side) in table.runs]
    return [run.outcome for run in runs if run.outcome.complete]


def _cost(outcome: Outcome, metric: Metric) -> float:
    """Return the logarithm of a run's value, larger where it is slower, as if others had taken nothing from it."""
    taken = outcome.disturbance.taken_share or 0.0 if metric.is_pace else 0.0
    return metric.cost(log(outcome.metrics[metric.name])) + log1p(-min(taken, _MOST_TAKEN))


@dataclass(frozen=True)
class ChosenMode:
    """The `rounds` that make the pairs of a verdict; `why` says why in this mode, empty where that was asked for."""

    rounds: ComparisonRounds
    why: str = ""

    def add_to(self, verdict: Verdict, asked: VerdictSection) -> Verdict:
        """Return the verdict with the mode in which it is made."""
        mode: PairsMode = "duet" if isinstance(self.rounds, Duets) else "interleaved"
        return replace(verdict, mode=mode, mode_asked=asked.mode, mode_why=self.why)


def choose_mode(
    rounds: ComparisonRounds, settings: VerdictSection, default: TrialRecord, winner: TrialRecord
) -> ChosenMode:
    """Return in which mode the winner is compared with the default; `rounds` are interleaved ones of the two.

    With `auto` a few pairs are made in both modes first; those of the mode that is chosen count.
    """
    if settings.mode == "interleaved":
        return ChosenMode(rounds)
    manager = rounds.manager
    lacks = [manager.halves.lacks(_resources(manager, one.configuration)) for one in (default, winner)]
    if said := next(filter(None, lacks), ""):
        return _report(ChosenMode(rounds, said))
    duets = Duets.of(rounds, Series.duet(winner.number))
    if settings.mode == "duet":
        return ChosenMode(duets)
    times_s = sorted(run_s(one.runs) for one in (default, winner))
    if times_s[0] < _LEAST_ABREAST * times_s[1]:
        return _report(ChosenMode(rounds, "the longer run would be alone for most of its time in a duet"))
    manager.display.line(f"trying {_TRIED} pairs in turns, and as many side by side")
    try:
        for count in range(1, _TRIED + 1):
            for tried in (rounds, duets)[:: 1 if count % 2 else -1]:
                tried.run_until(count)
    except TooShortError:
        return _report(ChosenMode(rounds, "the runs are too short for a duet"))
    found = slowdowns(rounds.table(), duets.table(), rounds.standings.metric, _TRIED)
    slower = not found or any(one.is_more_than(settings.precision) for one in found)
    return _report(ChosenMode(rounds if slower else duets, why_mode(found, slower=slower)))


def rounds_in_mode(rounds: ComparisonRounds, mode: VerdictMode) -> ComparisonRounds:
    """Return rounds of the same sides: duets with the first of them, if these are asked for and can be had."""
    if mode != "duet":
        return rounds
    lacks = [rounds.manager.halves.lacks(_resources(rounds.manager, side.configuration)) for side in rounds.sides]
    return rounds if any(lacks) else Duets.of(rounds, rounds.series)


def why_mode(found: Sequence[Slowdown], *, slower: bool) -> str:
    """Say why pairs that were tried in both modes are made in one of them."""
    if not found:
        return "too few of the runs that were tried side by side worked"
    figures = ", ".join(one.words() for one in found)
    found_out = "slow each other" if slower else "do not slow each other beyond the noise"
    return f"side by side the two {found_out}: {figures} times as slow as alone"


def _report(found: ChosenMode) -> ChosenMode:
    mode = "side by side" if isinstance(found.rounds, Duets) else "in turns"
    found.rounds.manager.display.line(f"pairs are made {mode}: {found.why}")
    return found


def _resources(manager: RunManager, configuration: Configuration) -> Resources:
    with temporary_folder("plan") as folder:
        return manager.factory.objective.job(configuration, Context(folder)).resources
