"""The ranks of a training: each learns from a share of every batch, and the gradients are averaged over all of them.

Windows are normalised over a rank's own share of a batch, as between the GPUs of the published training. Before a
validation the moving statistics are averaged, so that every rank judges the same network.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from parallel import data_parallel
from torch import distributed


@dataclass(frozen=True)
class Group:
    """This process among those that train together; alone unless told otherwise."""

    rank: int = 0
    ranks: int = 1

    def share(self, count: int) -> Any:
        """Return which of so many windows are this rank's: every one is some rank's, and nobody else's."""
        return np.arange(self.rank, count, self.ranks)

    def model(self, network: Any, device: Any) -> Any:
        """Return what is to learn: a network whose gradients are averaged over the ranks."""
        return network if self.ranks == 1 else data_parallel(network, device)

    def sum(self, values: Any, device: Any) -> Any:
        """Return the sum over the ranks of an array of float32 or float64."""
        if self.ranks == 1:
            return values
        there = torch.from_numpy(values).to(device)
        distributed.all_reduce(there)
        return there.cpu().numpy()

    def average_statistics(self, network: Any) -> None:
        """Give all ranks the mean of their moving statistics."""
        if self.ranks == 1:
            return
        moving = [values for name, values in network.named_buffers() if "running_" in name]
        together = torch.cat([values.flatten() for values in moving])
        distributed.all_reduce(together)
        together /= self.ranks
        for values, mean in zip(moving, together.split([values.numel() for values in moving]), strict=True):
            values.copy_(mean.view_as(values))


class Answers:
    """The logits and labels of windows, of which each rank knows some."""

    def __init__(self, windows: int, length: int) -> None:
        self._known = np.zeros((2, windows, length), dtype=np.float32)

    def put(self, places: Any, logits: Any, labels: Any) -> None:
        """Take the answers of some windows, (n, length, 1) each."""
        self._known[0, places], self._known[1, places] = logits.cpu().numpy()[..., 0], labels[..., 0]

    def of_all(self, group: Group, device: Any) -> tuple[Any, Any]:
        """Return logits and labels of all bases of all windows, flat."""
        logits, labels = group.sum(self._known, device)
        return logits.ravel(), labels.ravel()
