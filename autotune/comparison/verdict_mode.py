"""The mode of a verdict: choose whether its pairs run in turns or side by side, and give the reason.

Pairs run in turns, unless other processes use the machine so that pairs in turns differ by more than suits the
verdict, even without what was taken from their runs: a load disturbs both runs of a duet alike.

The two runs of a duet share caches, memory bandwidth and the power of the processor. If that slows them, a duet does
not measure what runs alone do. `Slowdown` estimates this effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp, expm1, log, sqrt
from statistics import fmean, stdev, variance

from autotune.comparison.duets import Duets, NoDuetError
from autotune.comparison.round_table import RoundTable
from autotune.comparison.rounds import ComparisonRounds
from autotune.comparison.time_left import run_s
from autotune.coordination.run_manager import RunManager
from autotune.held_folders import temporary_folder
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.statistics.verdict import PairsMode, Verdict, precise_enough
from autotune.studyfile import VerdictMode, VerdictSection
from launchers import Resources
from objectives.base import Context
from spaces import Configuration

# The number of pairs tried in each mode to see how they differ, and whether the runs of a duet slow each other.
_TRIED = 4
# If two runs share less than this part of the longer run's time, they share few of their disturbances.
_LEAST_ABREAST = 0.5
LEAST_RUNS = 3
"""With fewer runs their spread cannot be estimated."""
# One-sided level for each of the two sides: together they look slower by chance in 5 % of the studies.
_SURE = 0.975
# An interval reaches about this number of standard errors to either side.
_ERRORS = 2.0


@dataclass(frozen=True)
class Slowdown:
    """How much longer a configuration takes in a duet than alone.

    Attributes:
        label: The configuration.
        logs: The logarithms of the ratio of a run in a duet to a run alone.
        variance: The variance of one of these, pooled over both sides.
        degrees: The degrees of freedom of the variance.
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
        """Whether the slowdown is significant, or larger than both `hidden` (relative) and its own standard error."""
        from scipy.special import stdtrit  # noqa: PLC0415  slow to import, and reading a study needs none of it

        error = sqrt(self.variance / len(self.logs))
        sure = self.middle > error * float(stdtrit(self.degrees, _SURE))
        return sure or self.middle > max(log(1.0 + hidden), error)

    def words(self) -> str:
        """Return the slowdown in words, such as `default 1.204`."""
        return f"{self.label} {exp(self.middle):.3f}"


def slowdowns(alone: RoundTable, duets: RoundTable) -> tuple[Slowdown, ...]:
    """Return the slowdown of each side in the rounds tried; empty if a side has too few runs."""
    found = []
    for side in range(len(alone.sides)):
        before, after = (_costs(table, side) for table in (alone, duets))
        logs = [after_log - before_log for before_log, after_log in zip(before, after, strict=False)]
        if len(logs) < LEAST_RUNS:
            return ()
        found.append(tuple(logs))
    # Pool the variances: four runs of one side alone estimate it badly.
    degrees = sum(len(logs) - 1 for logs in found)
    pooled = sum((len(logs) - 1) * variance(logs) for logs in found) / degrees
    return tuple(Slowdown(side.label, logs, pooled, degrees) for side, logs in zip(alone.sides, found, strict=True))


def _costs(table: RoundTable, side: int) -> Sequence[float]:
    """Return the logarithms of a side's costs in the rounds tried."""
    values = table.undisturbed(side)
    first = sorted({number for number, _ in table.runs})[:_TRIED]
    return [table.metric.cost(log(values[number])) for number in first if number in values]


def _logs(table: RoundTable) -> Sequence[float]:
    """Return the logarithms of how many times better the second of each of the pairs tried is."""
    return [table.metric.cost(log(first / second)) for first, second in table.pairs(0, 1)[:_TRIED]]


def _suffice(logs: Sequence[float], settings: VerdictSection) -> bool:
    """Whether the usual number of pairs that differ as these do is expected to be precise enough."""
    if len(logs) < LEAST_RUNS:
        return False
    middle = exp(fmean(logs))
    enough = precise_enough((middle, middle, middle), settings.precision, settings.of_gain)
    return expm1(_ERRORS * stdev(logs) / sqrt(settings.pairs)) <= enough


@dataclass(frozen=True)
class ChosenMode:
    """The `rounds` that make the pairs of a verdict, and `why` they have this mode; empty if the user set the mode."""

    rounds: ComparisonRounds
    why: str = ""

    @classmethod
    def in_turns(cls, rounds: ComparisonRounds, why: str) -> "ChosenMode":
        """Return the mode of interleaved `rounds`, and display why duets are not used."""
        return _report(cls(rounds, why))

    def add_to(self, verdict: Verdict, asked: VerdictSection) -> Verdict:
        """Return the verdict with its mode and the reason for it."""
        mode: PairsMode = "duet" if isinstance(self.rounds, Duets) else "interleaved"
        return replace(verdict, mode=mode, mode_asked=asked.mode, mode_why=self.why)


def choose_mode(
    rounds: ComparisonRounds, settings: VerdictSection, default: TrialRecord, winner: TrialRecord
) -> ChosenMode:
    """Choose the mode in which the winner is compared with the default.

    With `auto` on a machine that others use, run a few pairs in turns first, and if they differ too much, a few side by
    side; the pairs of the chosen mode count.

    Args:
        rounds: Interleaved rounds of the default and the winner.
        settings: The mode and the precision asked for.
        default: The trial of the default.
        winner: The trial of the winner.
    """
    manager, is_auto = rounds.manager, settings.mode == "auto"
    duets = Duets.of(rounds, Series.duet(winner.number), replaceable=is_auto)
    # Pairs that exist count, so their mode stays.
    is_open = is_auto and not duets.table().runs
    if settings.mode == "interleaved" or (is_open and (rounds.table().runs or not _is_busy(manager))):
        return ChosenMode(rounds)
    lacks = [manager.halves.lacks(_resources(manager, one.configuration)) for one in (default, winner)]
    if said := next(filter(None, lacks), ""):
        return ChosenMode.in_turns(rounds, said)
    if settings.mode == "duet":
        return ChosenMode(duets)
    times_s = sorted(run_s(one.runs) for one in (default, winner))
    if times_s[0] < _LEAST_ABREAST * times_s[1]:
        return ChosenMode.in_turns(rounds, "the longer run would be alone for most of its time in a duet")
    in_turns = rounds.run_until(_TRIED)
    if not duets.table().runs and _suffice(_logs(in_turns), settings):
        return ChosenMode(rounds)
    return _try_duets(rounds, duets, in_turns, settings.precision)


def _try_duets(rounds: ComparisonRounds, duets: Duets, in_turns: RoundTable, hidden: float) -> ChosenMode:
    rounds.manager.display.line(f"pairs in turns differ much here: trying {_TRIED} side by side")
    try:
        duets.check(duets.table())
        abreast = replace(duets, most=_TRIED).run_until(_TRIED)
    except NoDuetError as error:
        return ChosenMode.in_turns(rounds, error.why)
    if why := why_not_duets(in_turns, abreast, hidden):
        return ChosenMode.in_turns(rounds, why)
    return _report(ChosenMode(duets, f"they differ less than pairs in turns ({_differ(abreast, in_turns)})"))


def rounds_in_mode(rounds: ComparisonRounds, mode: VerdictMode) -> ComparisonRounds:
    """Return duets of the same sides if `mode` asks for them and the cores allow them, else `rounds`."""
    if mode != "duet":
        return rounds
    lacks = [rounds.manager.halves.lacks(_resources(rounds.manager, side.configuration)) for side in rounds.sides]
    return rounds if any(lacks) else Duets.of(rounds, rounds.series)


def why_not_duets(in_turns: RoundTable, abreast: RoundTable, hidden: float) -> str:
    """Return why duets are worse than pairs in turns, after a few of both; empty if they are better.

    A slowdown that is not larger than `hidden` (relative) may be overlooked.
    """
    found = slowdowns(in_turns, abreast)
    if not found:
        return "too few of the runs that were tried worked"
    if len(_logs(abreast)) < LEAST_RUNS:
        return "the runs are too short for a duet"
    if any(one.is_more_than(hidden) for one in found):
        figures = ", ".join(one.words() for one in found)
        return f"side by side the two slow each other: {figures} times as slow as alone"
    if stdev(_logs(abreast)) >= stdev(_logs(in_turns)):
        return f"pairs side by side do not differ less ({_differ(abreast, in_turns)})"
    return ""


def _differ(*tables: RoundTable) -> str:
    return " against ".join(f"{expm1(stdev(_logs(table))):.1%}" for table in tables)


def _is_busy(manager: RunManager) -> bool:
    """Whether other processes use the machine and do not leave it in time."""
    manager.wait_until_quiet()
    return manager.disturbances is not None and manager.disturbances.is_busy


def _report(found: ChosenMode) -> ChosenMode:
    mode = "side by side" if isinstance(found.rounds, Duets) else "in turns"
    found.rounds.manager.display.line(f"pairs are made {mode}: {found.why}")
    return found


def _resources(manager: RunManager, configuration: Configuration) -> Resources:
    with temporary_folder("plan") as folder:
        return manager.factory.objective.job(configuration, Context(folder)).resources
