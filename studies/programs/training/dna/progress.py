"""The progress of a training: its figures, and when to stop."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Progress:
    """A training after `epoch` epochs.

    `elapsed_s` is the time of all epochs, over all runs; `stale` is the number of epochs since the smallest validation
    loss; `last` and `best` are the figures (with `step`) of the last epoch and of the one with that loss.
    """

    epoch: int = 0
    elapsed_s: float = 0.0
    stale: int = 0
    last: Mapping[str, float] = field(default_factory=dict)
    best: Mapping[str, float] = field(default_factory=dict)

    def after(self, figures: Mapping[str, float], took_s: float) -> "Progress":
        """Return the progress after one more epoch, which must have the figure `val_loss`."""
        epoch, elapsed_s = self.epoch + 1, self.elapsed_s + took_s
        last = {"step": epoch, **figures, "elapsed_s": elapsed_s}
        if not self.best or figures["val_loss"] < self.best["val_loss"]:
            return Progress(epoch, elapsed_s, 0, last, last)
        return Progress(epoch, elapsed_s, self.stale + 1, last, self.best)

    def as_plain(self) -> dict[str, Any]:
        """Return the progress as numbers and dictionaries, for a checkpoint."""
        return asdict(self)
