"""ResNet-50 (He et al. 2015, arXiv:1512.03385, table 1 and figure 5, right).

As in the paper, the first convolution of a stage halves the image. Weights start as in the paper; the scale of each
block's last normalisation starts at zero, as training with large batches needs (Goyal et al. 2017, arXiv:1706.02677,
section 5.1). As there, batches are normalised over each worker's share.
"""

from typing import Any

import torch
from torch import nn

_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # width, blocks, stride of the first block
_EXPANSION = 4


class Bottleneck(nn.Module):  # type: ignore[misc]  # torch is of another interpreter
    """A block: 1x1, 3x3 and 1x1 convolutions, beside a shortcut."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = width * _EXPANSION
        self.residual = nn.Sequential(
            *_convolution(channels, width, 1, stride),
            nn.ReLU(inplace=True),
            *_convolution(width, width, 3, 1),
            nn.ReLU(inplace=True),
            *_convolution(width, out, 1, 1),
        )
        nn.init.zeros_(self.residual[-1].weight)
        same = stride == 1 and channels == out
        self.shortcut = nn.Identity() if same else nn.Sequential(*_convolution(channels, out, 1, stride))

    def forward(self, images: Any) -> Any:
        """Map (n, channels, h, w) to (n, 4 width, h / stride, w / stride)."""
        return torch.relu(self.residual(images) + self.shortcut(images))


def resnet50(channels: int, classes: int) -> Any:
    """Return the network: (n, channels, h, w) to (n, classes)."""
    layers = [*_convolution(channels, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    at = 64
    for width, blocks, stride in _STAGES:
        for number in range(blocks):
            layers.append(Bottleneck(at, width, stride if number == 0 else 1))
            at = width * _EXPANSION
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(at, classes))


def _convolution(channels: int, out: int, edge: int, stride: int) -> tuple[Any, Any]:
    convolution = nn.Conv2d(channels, out, edge, stride, padding=edge // 2, bias=False)
    nn.init.kaiming_normal_(convolution.weight, mode="fan_out", nonlinearity="relu")
    return convolution, nn.BatchNorm2d(out)
