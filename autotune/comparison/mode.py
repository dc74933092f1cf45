"""The mode of a verdict: whether its pairs are made in turns or side by side, and why."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from autotune.comparison.blocks import Blocks
from autotune.comparison.duets import Duets, TooShortError
from autotune.comparison.slowdown import Slowdown, slowdowns
from autotune.comparison.time_left import run_s
from autotune.coordination.run_manager import RunManager
from autotune.held_folders import temporary_folder
from autotune.records.series import Series
from autotune.records.study import TrialRecord
from autotune.statistics.verdict import PairsMode, Verdict
from autotune.studyfile import VerdictMode, VerdictSection
from launchers import Resources
from objectives.base import Context
from spaces import Configuration

# So many pairs of each mode tell whether the runs of a duet slow each other.
_TRIED = 4
# Of the longer run's time: with less in common, a duet shares little of what disturbs it.
_LEAST_ABREAST = 0.5


@dataclass(frozen=True)
class Chosen:
    """The `rounds` that make the pairs of a verdict; `why` says why in this mode, empty where that was asked for."""

    rounds: Blocks
    why: str = ""

    def told(self, verdict: Verdict, asked: VerdictSection) -> Verdict:
        """Return the verdict with the mode in which it is made."""
        mode: PairsMode = "duet" if isinstance(self.rounds, Duets) else "interleaved"
        return replace(verdict, mode=mode, mode_asked=asked.mode, mode_why=self.why)


def chosen(rounds: Blocks, settings: VerdictSection, default: TrialRecord, winner: TrialRecord) -> Chosen:
    """Return in which mode the winner is compared with the default; `rounds` are interleaved ones of the two.

    With `auto` a few pairs are made in both modes first; those of the mode that is chosen count.
    """
    if settings.mode == "interleaved":
        return Chosen(rounds)
    manager = rounds.manager
    lacks = [manager.halves.lacks(_resources(manager, one.configuration)) for one in (default, winner)]
    if said := next(filter(None, lacks), ""):
        return _told(Chosen(rounds, said))
    duets = Duets.of(rounds, Series.duet(winner.number))
    if settings.mode == "duet":
        return Chosen(duets)
    times_s = sorted(run_s(one.runs) for one in (default, winner))
    if times_s[0] < _LEAST_ABREAST * times_s[1]:
        return _told(Chosen(rounds, "the longer run would be alone for most of its time in a duet"))
    manager.display.line(f"trying {_TRIED} pairs in turns, and as many side by side")
    try:
        for count in range(1, _TRIED + 1):
            for tried in (rounds, duets)[:: 1 if count % 2 else -1]:
                tried.until(count)
    except TooShortError:
        return _told(Chosen(rounds, "the runs are too short for a duet"))
    found = slowdowns(rounds.table(), duets.table(), rounds.standings.metric, _TRIED)
    slower = not found or any(one.is_more_than(settings.precision) for one in found)
    return _told(Chosen(rounds if slower else duets, why_mode(found, slower=slower)))


def in_mode(rounds: Blocks, mode: VerdictMode) -> Blocks:
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


def _told(found: Chosen) -> Chosen:
    mode = "side by side" if isinstance(found.rounds, Duets) else "in turns"
    found.rounds.manager.display.line(f"pairs are made {mode}: {found.why}")
    return found


def _resources(manager: RunManager, configuration: Configuration) -> Resources:
    with temporary_folder("plan") as folder:
        return manager.factory.objective.job(configuration, Context(folder)).resources
