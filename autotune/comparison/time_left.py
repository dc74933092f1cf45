"""How long a study still takes: what is left of tuning, and the verdict after it, from the runs so far."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from autotune.records.study import Run, TrialRecord
from autotune.statistics.standings import Standings
from autotune.studyfile import StudyFile, VerdictSection


@dataclass(frozen=True)
class TimeLeft:
    """A span of time, from the `least` that is expected to the `most`; in seconds."""

    least_s: float = 0.0
    most_s: float = 0.0

    def __add__(self, other: "TimeLeft") -> "TimeLeft":
        """Return the time of both, one after the other."""
        return TimeLeft(self.least_s + other.least_s, self.most_s + other.most_s)

    def shared(self, width: int) -> "TimeLeft":
        """Return the time with as many runs side by side."""
        return TimeLeft(self.least_s / width, self.most_s / width)


def tuning_left(standings: Standings, study: StudyFile) -> TimeLeft | None:
    """Return the time until the verdict is there, while trials run; None while that cannot be known."""
    budget = study.budget
    if not standings.settled or budget.auto:
        return None
    # A smaller budget than before may be behind what has run.
    left_s = standings.spent_s / standings.settled * max(0, budget.most - standings.settled) / budget.workers
    tuning = TimeLeft(left_s, left_s)
    return tuning if not study.has_one_winner else tuning + verdict_left(standings, study.verdict)


def verdict_left(standings: Standings, section: VerdictSection) -> TimeLeft:
    """Return the time of a whole verdict: the best are chosen among in rounds, and the winner is compared in pairs.

    Nobody knows yet how many of the trials look better than the default in the end, nor how many pairs are needed.
    """
    default, best = standings.baseline, standings.incumbent
    if default is None or best is None:
        return TimeLeft()
    default_s, best_s = run_s(default.runs), run_s(best.runs)
    choosing_s = section.rounds * (default_s + section.candidates * best_s)
    pairs = pairs_left(default, best, section.pairs, section.max_pairs)
    return TimeLeft(pairs.least_s, pairs.most_s + (choosing_s if section.candidates > 1 else 0.0))


def pairs_left(default: TrialRecord, winner: TrialRecord, least: int, most: int) -> TimeLeft:
    """Return the time of at least and at most so many pairs of runs."""
    pair_s = run_s(default.runs) + run_s(winner.runs)
    return TimeLeft(least * pair_s, most * pair_s)


def run_s(runs: Iterable[Run]) -> float:
    """Return how long a run takes: the median of those that were not stopped; 0 where there is none."""
    times = [run.outcome.usage.elapsed_s for run in runs if run.outcome.complete]
    return median(times) if times else 0.0


def rounds_left(runs: Iterable[tuple[int, Run]], todo: Iterable[int]) -> TimeLeft | None:
    """Return the time of runs of the sides `todo`, by the (side, run) so far; None before the first."""
    by_side: dict[int, list[Run]] = {}
    for side, run in runs:
        by_side.setdefault(side, []).append(run)
    known = {side: run_s(ended) for side, ended in by_side.items() if any(run.outcome.complete for run in ended)}
    if not known:
        return None
    usual_s = fmean(known.values())
    left_s = sum(known.get(side, usual_s) for side in todo)
    return TimeLeft(left_s, left_s)
