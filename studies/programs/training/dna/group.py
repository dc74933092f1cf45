"""The ranks of a training: each trains on a share of every batch, and gradients are averaged over all ranks.

Windows are normalised over a rank's share of a batch, as between the GPUs of the published training. Before a
validation the moving statistics are averaged, so that every rank validates the same network.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from parallel import data_parallel
from torch import distributed


@dataclass(frozen=True)
class Group:
    """This process and the number of processes that train together; one by default."""

    rank: int = 0
    ranks: int = 1

    def share(self, count: int) -> Any:
        """Return the indices of this rank's share of `count` windows; each window belongs to exactly one rank."""
        return np.arange(self.rank, count, self.ranks)

    def model(self, network: Any, device: Any) -> Any:
        """Return the network to train, whose gradients are averaged over the ranks."""
        return network if self.ranks == 1 else data_parallel(network, device)

    def sum(self, values: Any, device: Any) -> Any:
        """Return the sum over the ranks of an array of float32 or float64."""
        if self.ranks == 1:
            return values
        there = torch.from_numpy(values).to(device)
        distributed.all_reduce(there)
        return there.cpu().numpy()

    def average_statistics(self, network: Any) -> None:
        """Set the moving statistics of all ranks to their mean."""
        if self.ranks == 1:
            return
        moving = [values for name, values in network.named_buffers() if "running_" in name]
        together = torch.cat([values.flatten() for values in moving])
        distributed.all_reduce(together)
        together /= self.ranks
        for values, mean in zip(moving, together.split([values.numel() for values in moving]), strict=True):
            values.copy_(mean.view_as(values))


class Answers:
    """The logits and labels of windows; each rank has those of its share."""

    def __init__(self, windows: int, length: int) -> None:
        self._known = np.zeros((2, windows, length), dtype=np.float32)

    def put(self, places: Any, logits: Any, labels: Any) -> None:
        """Store the logits and labels of some windows, (n, length, 1) each."""
        self._known[0, places], self._known[1, places] = logits.cpu().numpy()[..., 0], labels[..., 0]

    def of_all(self, group: Group, device: Any) -> tuple[Any, Any]:
        """Return logits and labels of all bases of all windows, flat."""
        logits, labels = group.sum(self._known, device)
        return logits.ravel(), labels.ravel()
