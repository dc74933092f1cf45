"""What disturbed the runs of a study: the time that other processes took, and runs on the same cores."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from statistics import median

from autotune.records.occupancy import Occupancy
from autotune.records.outcome import DISTURBED
from autotune.records.series import TUNING, Series
from autotune.records.study import Run
from autotune.statistics.verdict import middle_ratio
from launchers.mpi import spinning_ranks
from launchers.noise.disturbance import NOTABLE_SHARE
from objectives.base import Metric

# When others take this share, a program with a thread for each core waits for the slowest thread most of the time.
_MOST_LOSE = 0.25


@dataclass(frozen=True)
class TakenShare:
    """The time that other processes took from a run.

    Attributes:
        at_s: When the run began, in seconds after the first run.
        share: The share of its time, from 0 to 1.
        trial: The number of its trial; None without a trial.
        purpose: The series of the run.
        is_disturbed: Whether the run was set aside for it.
    """

    at_s: float
    share: float
    trial: int | None
    purpose: str
    is_disturbed: bool


def taken_shares(runs: Iterable[Run]) -> tuple[TakenShare, ...]:
    """Return the shares of the runs for which they are known, in the order in which the runs began."""
    known: list[tuple[datetime, Run, float]] = []
    for run in runs:
        share = run.outcome.disturbance.taken_share
        with suppress(ValueError):  # stored by another program
            if share is not None:
                known.append((datetime.fromisoformat(run.started).replace(tzinfo=UTC), run, share))
    known.sort(key=lambda entry: entry[0])
    return tuple(
        TakenShare(
            (began - known[0][0]).total_seconds(),
            share,
            run.trial,
            run.series.before.kind.label,
            run.outcome.code == DISTURBED,
        )
        for began, run, share in known
    )


def disturbance_sentence(taken: Sequence[TakenShare]) -> str:
    """Return in words how much time other processes took; empty if it is not known."""
    if not taken:
        return ""
    shares, disturbed = [one.share for one in taken], sum(one.is_disturbed for one in taken)
    said = f"others kept runs from running for {median(shares):.1%} of their time (median), {max(shares):.0%} at most"
    return f"{said}; of {len(taken)} runs, {disturbed} set aside for that" if disturbed else said


def taken_doubt(runs: Iterable[Run], metric: Metric, verdict: Series | None) -> str | None:
    """Return that other processes took a notable share of the runs behind the result; None if they did not.

    Args:
        runs: All runs of the study.
        metric: The target; load cannot change the quality of a result.
        verdict: The series of the verdict's runs; without a verdict the runs of tuning are the result.
    """
    if not metric.is_pace:
        return None
    runs = list(runs)
    counted = [run for run in runs if run.series == (verdict or TUNING) and run.outcome.complete]
    behind = [run.outcome.disturbance for run in counted]
    shares = [one.taken_share for one in behind if one.taken_share is not None]
    unknown = sum(one.taken_share is None and (one.others_share or 0.0) >= NOTABLE_SHARE for one in behind)
    doubts = []
    if shares and median(shares) >= NOTABLE_SHARE:
        threads = "; programs with many threads lose most" if median(shares) >= _MOST_LOSE else ""
        doubts.append(
            f"others took {median(shares):.0%} of these runs' time (median): its effect is subtracted"
            f"{_as_measured(counted, metric, verdict)}, but on a quiet machine the gain may be another{threads}"
        )
        # Configurations with more ranks may have lost for that alone.
        doubts += filter(None, [next(filter(None, (spinning_ranks(run.job) for run in runs)), "")])
    if unknown:
        doubts.append(f"what others took from {unknown} of {len(behind)} of these runs is not known")
    return "; ".join(doubts) or None


def _as_measured(runs: Iterable[Run], metric: Metric, verdict: Series | None) -> str:
    """Return the ratio of a verdict's pairs as measured, beside the others; empty without pairs."""
    if verdict is None:
        return ""
    rounds: dict[int, dict[bool, float]] = defaultdict(dict)
    for run in runs:
        if metric.name in run.outcome.metrics:
            rounds[run.round][str(run.trial) in verdict.of] = run.outcome.metrics[metric.name]
    pairs = [(sides[False], sides[True]) for sides in rounds.values() if len(sides) == 2]
    return f" (as measured, the ratio is {middle_ratio(pairs, metric):.3f})" if pairs else ""


def sharing_cores(runs: Mapping[int, Run]) -> frozenset[int]:
    """Return the keys of the runs that were bound to a core of another of `runs` at the same time."""
    on_node: dict[str, list[tuple[int, Occupancy]]] = defaultdict(list)
    for key, run in runs.items():
        occupancy = Occupancy.of(run.outcome)
        if occupancy is not None:
            on_node[occupancy.node].append((key, occupancy))
    return frozenset(key for placed in on_node.values() for key in _overlapping(placed))


def _overlapping(placed: Iterable[tuple[int, Occupancy]]) -> set[int]:
    """Return the keys of the runs of one node that shared a core with another."""
    sharing: set[int] = set()
    running: list[tuple[int, Occupancy]] = []
    for key, occupancy in sorted(placed, key=lambda run: run[1].began_at):
        running = [run for run in running if run[1].ended_at > occupancy.began_at]
        others = {other for other, its in running if its.threads_in_common(occupancy)}
        sharing |= others | ({key} if others else set())
        running.append((key, occupancy))
    return sharing
