"""Estimate how long a study still takes, tuning and verdict, from the runs so far."""

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

from autotune.records.study import Run, TrialRecord
from autotune.statistics.standings import Standings
from autotune.studyfile import StudyFile, VerdictSection


@dataclass(frozen=True)
class TimeLeft:
    """The least and the most time that is expected, in seconds."""

    least_s: float = 0.0
    most_s: float = 0.0

    def __add__(self, other: "TimeLeft") -> "TimeLeft":
        """Return the time of both together, one after the other."""
        return TimeLeft(self.least_s + other.least_s, self.most_s + other.most_s)

    def divide(self, width: int) -> "TimeLeft":
        """Return the time with `width` runs side by side."""
        return TimeLeft(self.least_s / width, self.most_s / width)


def tuning_left(standings: Standings, study: StudyFile) -> TimeLeft | None:
    """Return the time until the verdict, while trials run; None while it cannot be estimated."""
    budget = study.budget
    if not standings.settled or budget.auto:
        return None
    # The user may have set a smaller budget than the number of trials that already ran.
    left_s = standings.spent_s / standings.settled * max(0, budget.most - standings.settled) / budget.workers
    tuning = TimeLeft(left_s, left_s)
    return tuning if not study.has_one_winner else tuning + verdict_left(standings, study.verdict)


def verdict_left(standings: Standings, section: VerdictSection) -> TimeLeft:
    """Return the time of a whole verdict: the rounds of the candidates, and the pairs of the winner.

    It is a range, since the number of candidates and the number of pairs are not known yet.
    """
    default, best = standings.baseline, standings.incumbent
    if default is None or best is None:
        return TimeLeft()
    best_s = run_s(best.runs)
    choosing_s = section.rounds * section.candidates * best_s
    pairs = pairs_left(default, best, section.pairs, section.max_pairs)
    return TimeLeft(pairs.least_s, pairs.most_s + (choosing_s if section.candidates > 1 else 0.0))


def pairs_left(default: TrialRecord, winner: TrialRecord, least: int, most: int) -> TimeLeft:
    """Return the time of `least` to `most` pairs of runs."""
    pair_s = run_s(default.runs) + run_s(winner.runs)
    return TimeLeft(least * pair_s, most * pair_s)


def run_s(runs: Iterable[Run]) -> float:
    """Return the median time of complete runs in seconds; 0 without any."""
    times = [run.outcome.usage.elapsed_s for run in runs if run.outcome.complete]
    return median(times) if times else 0.0


def rounds_left(runs: Iterable[tuple[int, Run]], todo: Iterable[int]) -> TimeLeft | None:
    """Return the time of one run of each side in `todo`, from the (side, run) so far; None before the first run."""
    by_side: dict[int, list[Run]] = {}
    for side, run in runs:
        by_side.setdefault(side, []).append(run)
    known = {side: run_s(ended) for side, ended in by_side.items() if any(run.outcome.complete for run in ended)}
    if not known:
        return None
    usual_s = fmean(known.values())
    left_s = sum(known.get(side, usual_s) for side in todo)
    return TimeLeft(left_s, left_s)
