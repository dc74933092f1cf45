"""How a training program and autotune talk: a program prints its progress, and goes on from its checkpoint.

Needs nothing but Python's standard library, so that it can be copied beside any training script:

- `AUTOTUNE_STEPS`: the step (epoch) after which to stop; the program's own number without it;
- `AUTOTUNE_CHECKPOINT`: a folder that is kept between the runs of one trial; nothing is kept without it;
- `AUTOTUNE_SEED`: a number for random numbers; the program's own without it;
- one line of JSON on standard output after each step: `{"step": 3, "val_auc": 0.51}`;
- SIGTERM: write a checkpoint and end; a process that has not ended some seconds later is killed.
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
    """Return the step after which to stop; `own` is the program's, when nobody asked for another.

    Raises:
        SystemExit: what was asked for is no positive number.
    """
    asked = os.environ.get(STEPS, str(own))
    if not asked.isdecimal() or int(asked) < 1:
        raise SystemExit(f"{STEPS} is the step after which to stop, a positive number, got {asked!r}")
    return int(asked)


def seed(own: int) -> int:
    """Return the number for random numbers; `own` is the program's, when nobody asked for another.

    Raises:
        SystemExit: what was asked for is no whole number of 0 or more.
    """
    asked = os.environ.get(SEED, str(own))
    if not asked.isdecimal():
        raise SystemExit(f"{SEED} is a number for random numbers, 0 or more, got {asked!r}")
    return int(asked)


def report(step: int, **metrics: float) -> None:
    """Print the progress line of a step. What is not a finite number is left out: JSON has no word for it."""
    finite = {name: value for name, value in metrics.items() if math.isfinite(value)}
    print(json.dumps({"step": step, **finite}), flush=True)


class StopRequest:
    """Whether this process was asked to stop; from its making on SIGTERM only asks."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)

    def _ask(self, number: int, frame: FrameType | None) -> None:
        del number, frame
        self.asked = True


class Checkpoint:
    """The file that a program goes on from: whole or not there, whatever is killed in the middle."""

    def __init__(self, name: str = "checkpoint.pt") -> None:
        folder = os.environ.get(CHECKPOINT)
        self.path = Path(folder) / name if folder else None

    def exists(self) -> bool:
        """Whether there is something to go on from."""
        return self.path is not None and self.path.is_file()

    def write(self, save: Callable[[Path], None]) -> None:
        """Let `save` write a file, then put it in the place of the old one.

        A checkpoint that cannot be written (a full disk) is no reason to lose the training: it is said, and the older
        one stays.
        """
        if self.path is None:
            return
        # Always the same name: what a killed process left half written is written over.
        fresh = self.path.with_name(f"{self.path.name}.new")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            save(fresh)
            with fresh.open("rb") as file:
                os.fsync(file.fileno())
            fresh.replace(self.path)
        except (OSError, RuntimeError) as error:  # torch.save has the other one for a full disk
            print(f"the checkpoint could not be written: {error}", file=sys.stderr)
            with contextlib.suppress(OSError):  # whatever hindered the writing may hinder this, too
                fresh.unlink(missing_ok=True)
