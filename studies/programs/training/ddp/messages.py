"""What the leading process and the workers tell each other, in messages and in shared memory."""

import ctypes
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray


@dataclass(frozen=True)
class Reported:
    """What is known after a report: the mean loss, and the seconds of training until the target loss, once there."""

    loss: float | None = None
    time_to_target_s: float | None = None


@dataclass(frozen=True)
class Ready:
    """A worker could start; what the checkpoint knows: steps done, seconds they took, the last report."""

    step: int
    trained_s: float
    reported: Reported
    parameters: int


@dataclass(frozen=True)
class Verdict:
    """Whether to train for another interval, or is the training `complete`, and what is known so far."""

    go_on: bool
    complete: bool
    reported: Reported


@dataclass(frozen=True)
class Validated:
    """What a worker found on its share of the samples that nobody trained with; it may have none."""

    samples: int
    loss_sum: float
    elapsed_s: float


@dataclass(frozen=True)
class Ended:
    """A worker is through; only the first worker writes checkpoints, and only a complete training is validated."""

    checkpoint_s: float
    validated: Validated | None


class Brake:
    """How all workers end after the same step, without a message of their own to each other.

    The first worker decides before it begins a step, and says so in shared memory. No worker can finish that step's
    all-reduce before the first one has taken part in it. So who looks after the step sees what was decided.
    """

    def __init__(self) -> None:
        self._asked_decided = RawArray(ctypes.c_longlong, [0, -1])

    def ask(self) -> None:
        """Ask for an end after the current step (the leading process)."""
        self._asked_decided[0] = 1

    def decide(self, step: int) -> None:
        """Make this step the last one, if that was asked for (the first worker, before the step)."""
        if self._asked_decided[0]:
            self._asked_decided[1] = step

    def ends_after(self, step: int) -> bool:
        """Whether this step was the last one (any worker, after the step)."""
        return bool(self._asked_decided[1] == step)


class Pulse:
    """How workers show between their messages, which may be hours apart, that they get on.

    Each counts in shared memory what it did, in a place of its own.
    """

    def __init__(self, workers: int) -> None:
        self._counts = RawArray(ctypes.c_longlong, workers)

    def beat(self, rank: int) -> None:
        """Take note that this worker got on (that worker)."""
        self._counts[rank] += 1

    def counts(self) -> tuple[int, ...]:
        """Return how often each worker got on (the leading process)."""
        return tuple(self._counts)


@dataclass(frozen=True)
class Shared:
    """What all processes of a run have in shared memory."""

    brake: Brake
    pulse: Pulse
