"""Speed, and the efficiencies of the POP Centre of Excellence, from the workers' times.

POP's model (pop-coe.eu, "POP Standard Metrics for Parallel Performance Analysis"): of all workers' useful computation
time, load balance is mean / maximum, communication efficiency is maximum / run time, and parallel efficiency is their
product, mean / run time. Useful time is a worker's wall time minus

- waiting for the next batch (with no loader processes: making it);
- exposed communication: from its last gradient of a step to the end of the all-reduces, which includes waiting for
  slower workers (see `exposure`);
- writing checkpoints (the first worker; the others wait for it in the next all-reduce).

The rest is the forward and backward pass, the optimiser's update, and moving data to the device. Communication that
overlaps the backward pass counts as computation, although it may slow it down, in particular without a spare core. So
these efficiencies are upper bounds of those of a tracing tool.
"""

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """One worker's times from one report to the next; `loss` is the mean over its samples.

    It waited `data_s` for batches, and `communicate_s` for exposed reductions.
    """

    step: int
    steps: int
    wall_s: float
    useful_s: float
    loss: float
    data_s: float = 0.0
    communicate_s: float = 0.0


@dataclass(frozen=True)
class Efficiencies:
    """Shares, 0 to 1."""

    load_balance: float
    communication_efficiency: float

    @property
    def parallel_efficiency(self) -> float:
        """The useful share of all workers' time."""
        return self.load_balance * self.communication_efficiency


@dataclass(frozen=True)
class Phases:
    """Seconds of each phase, as means over workers.

    The rest of the wall time is checkpoints, and the interpreter between the phases.
    """

    data_s: float
    compute_s: float
    communicate_s: float


def wall_s(seen: Sequence[Interval]) -> float:
    """Return the seconds of an interval, until the slowest worker finished."""
    return max(one.wall_s for one in seen)


def samples_per_s(seen: Sequence[Interval], batch_size: int) -> float:
    """Return the speed of all workers together in one interval; `batch_size` is for all workers."""
    return seen[0].steps * batch_size / wall_s(seen)


def mean_loss(seen: Sequence[Interval]) -> float:
    """Return the mean loss of all samples of an interval: workers have equal shares of each batch."""
    return statistics.fmean(one.loss for one in seen)


def efficiencies(intervals: Sequence[Sequence[Interval]]) -> Efficiencies:
    """Return the efficiencies over intervals, at least one, each with an entry per worker.

    Without any useful time the load balance is 1 and the efficiency 0.
    """
    useful = [sum(one.useful_s for one in of_worker) for of_worker in zip(*intervals, strict=True)]
    longest = max(useful)
    elapsed_s = sum(wall_s(seen) for seen in intervals)
    # A worker's useful time may equal its wall time up to the rounding of sums.
    balance = min(1.0, statistics.fmean(useful) / longest) if longest > 0 else 1.0
    return Efficiencies(balance, min(1.0, longest / elapsed_s) if longest > 0 else 0.0)


def phases(intervals: Sequence[Sequence[Interval]]) -> Phases:
    """Return the phases of all intervals, at least one, each with an entry per worker."""

    def mean_s(seconds: Callable[[Interval], float]) -> float:
        return sum(statistics.fmean(map(seconds, seen)) for seen in intervals)

    return Phases(
        mean_s(lambda one: one.data_s), mean_s(lambda one: one.useful_s), mean_s(lambda one: one.communicate_s)
    )
