"""The U-Net: five levels of convolutions down to windows of a 32nd of the length, and up again.

A level is twice (convolution of 7 bases, ReLU, batch normalisation). On the way down it begins with max pooling of 2
and has 1.5 times the filters of the level above. On the way up it begins with a transposed convolution of stride 2,
whose output is concatenated with the level of this length on the way down. Source: H. Li and Y. Guan, Genome Research
31 (2021), 721, with the input of five channels of the APAC HPC-AI competition of 2022.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import nn

CHANNELS = 5


@dataclass(frozen=True)
class Shape:
    """The shape of a network. Lengths must be a multiple of 2**depth."""

    filters: int = 15
    factor: float = 1.5
    depth: int = 5
    kernel: int = 7
    # With Keras' default of .99 (.01 in torch's terms) the moving statistics need hundreds of batches to follow the
    # weights, so that short trainings had meaningless validation losses of 1e2 to 1e5.
    momentum: float = 0.1

    @property
    def down(self) -> tuple[int, ...]:
        """Filters of the levels on the way down, from the full length on: 15, 22, 33, 49, 73, 109."""
        return _scaled(self.filters, self.factor, self.depth)

    @property
    def up(self) -> tuple[int, ...]:
        """Filters on the way up, to the full length: 72, 48, 32, 21, 14."""
        return _scaled(self.down[-1], 1 / self.factor, self.depth)[1:]


def _scaled(first: int, factor: float, times: int) -> tuple[int, ...]:
    found = [first]
    for _ in range(times):
        found.append(max(1, int(found[-1] * factor)))
    return tuple(found)


class UNet(nn.Module):  # type: ignore[misc]  # torch is untyped here
    """From windows (batch, length, 5) to logits (batch, length, 1); the probability is their sigmoid."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        down, up = shape.down, shape.up
        self.first = _level(CHANNELS, down[0], shape)
        self.descent = nn.ModuleList(_level(a, b, shape) for a, b in pairwise(down))
        self.widen = nn.ModuleList(nn.ConvTranspose1d(a, b, 2, stride=2) for a, b in pairwise((down[-1], *up)))
        self.ascent = nn.ModuleList(
            _level(beside + a, a, shape) for beside, a in zip(reversed(down[:-1]), up, strict=True)
        )
        self.last = nn.Conv1d(up[-1], 1, 1)
        self.apply(_initialise)

    def levels(self) -> Iterator[Any]:
        """Yield the levels, which have nearly all activations."""
        yield from (self.first, *self.descent, *self.ascent)

    def forward(self, windows: Any) -> Any:
        """Return the logits."""
        found = self.first(windows.transpose(1, 2))
        skipped = []
        for level in self.descent:
            skipped.append(found)
            found = level(nn.functional.max_pool1d(found, 2))
        for widen, level in zip(self.widen, self.ascent, strict=True):
            found = level(torch.cat([torch.relu(widen(found)), skipped.pop()], dim=1))
        return self.last(found).transpose(1, 2)


def _level(inputs: int, outputs: int, shape: Shape) -> Any:
    parts = []
    for channels in (inputs, outputs):
        parts += [
            nn.Conv1d(channels, outputs, shape.kernel, padding="same"),
            nn.ReLU(),
            nn.BatchNorm1d(outputs, eps=1e-3, momentum=shape.momentum),  # Keras' epsilon
        ]
    return nn.Sequential(*parts)


def _initialise(module: Any) -> None:
    # As Keras does: Glorot's uniform distribution, biases of 0.
    if isinstance(module, nn.Conv1d | nn.ConvTranspose1d):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)
