"""Messages and shared memory between the leading process and the workers."""

import ctypes
from dataclasses import dataclass
from multiprocessing.sharedctypes import RawArray


@dataclass(frozen=True)
class Reported:
    """The state after a report: the mean loss, and the seconds of training until the target loss, once reached."""

    loss: float | None = None
    time_to_target_s: float | None = None


@dataclass(frozen=True)
class Ready:
    """A worker has started. From the checkpoint: steps done, their seconds, the last report."""

    step: int
    trained_s: float
    reported: Reported
    parameters: int


@dataclass(frozen=True)
class Verdict:
    """Whether to train for another interval, whether the training is `complete`, and the last report."""

    go_on: bool
    complete: bool
    reported: Reported


@dataclass(frozen=True)
class Validated:
    """A worker's result on its share of the validation samples, which may be empty."""

    samples: int
    loss_sum: float
    elapsed_s: float


@dataclass(frozen=True)
class Ended:
    """A worker has ended; only the first one writes checkpoints, and only a complete training is validated."""

    checkpoint_s: float
    validated: Validated | None


class Brake:
    """Ends all workers after the same step, without messages between them.

    The first worker decides before it begins a step, and writes that to shared memory. No worker can finish the step's
    all-reduce before the first one takes part in it, so every worker that reads after the step sees the decision.
    """

    def __init__(self) -> None:
        self._asked_decided = RawArray(ctypes.c_longlong, [0, -1])

    def ask(self) -> None:
        """Request an end after the current step (the leading process)."""
        self._asked_decided[0] = 1

    def decide(self, step: int) -> None:
        """Make this step the last one, if an end was requested (the first worker, before the step)."""
        if self._asked_decided[0]:
            self._asked_decided[1] = step

    def ends_after(self, step: int) -> bool:
        """Whether this step was the last one (any worker, after the step)."""
        return bool(self._asked_decided[1] == step)


class Pulse:
    """Signs of life of workers, whose messages may be hours apart.

    Each worker has a counter in shared memory.
    """

    def __init__(self, workers: int) -> None:
        self._counts = RawArray(ctypes.c_longlong, workers)

    def beat(self, rank: int) -> None:
        """Count a sign of life of a worker (that worker)."""
        self._counts[rank] += 1

    def counts(self) -> tuple[int, ...]:
        """Return the count of each worker (the leading process)."""
        return tuple(self._counts)


@dataclass(frozen=True)
class Shared:
    """Shared memory of all processes of a run."""

    brake: Brake
    pulse: Pulse
