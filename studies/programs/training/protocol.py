"""The protocol between a training program and autotune: progress on standard output, resumed from a checkpoint.

Needs only Python's standard library, so it can be copied beside any training script:

- `AUTOTUNE_STEPS`: the step (epoch) after which to stop; default: the program's own number;
- `AUTOTUNE_CHECKPOINT`: a folder that persists between the runs of one trial; default: no checkpoints;
- `AUTOTUNE_SEED`: the random seed; default: the program's own;
- one line of JSON on standard output after each step: `{"step": 3, "val_auc": 0.51}`;
- SIGTERM: write a checkpoint and exit; a process that is still running some seconds later is killed.
"""

import contextlib
import json
import math
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

STEPS = "AUTOTUNE_STEPS"
CHECKPOINT = "AUTOTUNE_CHECKPOINT"
SEED = "AUTOTUNE_SEED"


def last_step(own: int) -> int:
    """Return the step after which to stop: AUTOTUNE_STEPS, else `own`.

    Raises:
        SystemExit: AUTOTUNE_STEPS is not a positive integer.
    """
    asked = os.environ.get(STEPS, str(own))
    if not asked.isdecimal() or int(asked) < 1:
        raise SystemExit(f"{STEPS} is the step after which to stop, a positive number, got {asked!r}")
    return int(asked)


def seed(own: int) -> int:
    """Return the random seed: AUTOTUNE_SEED, else `own`.

    Raises:
        SystemExit: AUTOTUNE_SEED is not an integer of 0 or more.
    """
    asked = os.environ.get(SEED, str(own))
    if not asked.isdecimal():
        raise SystemExit(f"{SEED} is a number for random numbers, 0 or more, got {asked!r}")
    return int(asked)


def report(step: int, **metrics: float) -> None:
    """Print the progress line of a step, without infinite and undefined values, which JSON does not have."""
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    print(json.dumps({"step": step, **finite}), flush=True)


class StopRequest:
    """Whether SIGTERM asked this process to stop; creating it replaces the signal's default action."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.asked = True


class Checkpoint:
    """The file that a program resumes from; it is replaced atomically, so a killed process leaves no partial file."""

    def __init__(self, name: str = "checkpoint.pt") -> None:
        folder = os.environ.get(CHECKPOINT)
        self.path = Path(folder) / name if folder else None

    def exists(self) -> bool:
        """Whether there is a checkpoint to resume from."""
        return self.path is not None and self.path.is_file()

    def write(self, save: Callable[[Path], None]) -> None:
        """Let `save` write a file, and replace the old one with it.

        If that fails (a full disk), the older checkpoint stays, and training continues after a message.
        """
        if self.path is None:
            return
        # Always the same name, so that the partial file of a killed process is overwritten.
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save(fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except (OSError, RuntimeError) as error:  # torch.save raises a RuntimeError for a full disk
            print(f"the checkpoint could not be written: {error}", file=sys.stderr)
            with contextlib.suppress(OSError):  # the cause may prevent this, too
                fresh.unlink(missing_ok=True)
