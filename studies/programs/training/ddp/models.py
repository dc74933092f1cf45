"""The networks, each with its loss and its data."""

from typing import Any

import torch
from torch import nn

from .data import Patches, Samples, Sequences
from .options import PATCH_MODELS, Settings
from .resnet import Bottleneck, resnet50

_HIDDEN = 128  # of a recurrent layer


class Recurrent(nn.Module):  # type: ignore[misc]  # torch is of another interpreter
    """Two recurrent layers, and a linear one on the last output: (n, length, channels) to (n, classes)."""

    def __init__(self, kind: Any, channels: int, classes: int) -> None:
        super().__init__()
        self.layers = kind(channels, _HIDDEN, num_layers=2, batch_first=True)
        self.last = nn.Linear(_HIDDEN, classes)

    def forward(self, sequences: Any) -> Any:
        """Classify sequences."""
        outputs, _ = self.layers(sequences)
        return self.last(outputs[:, -1])


def small_cnn(channels: int, classes: int) -> Any:
    """Return three convolutions and two linear layers: (n, channels, h, w) to (n, classes).

    It normalises over groups of channels (Wu and He 2018, arXiv:1803.08494) and not over batches, so that the number
    of workers does not change what it learns.
    """
    parts, at = [], channels
    for out in (32, 64, 128):
        layers = nn.Conv2d(at, out, 3, padding=1), nn.GroupNorm(8, out), nn.ReLU(inplace=True), nn.MaxPool2d(2)
        parts.append(nn.Sequential(*layers))
        at = out
    head = [nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(at * 16, 512), nn.ReLU(inplace=True)]
    return nn.Sequential(*parts, *head, nn.Linear(512, classes))


def network(model: str, channels: int, classes: int) -> Any:
    """Return the network of this name, with weights from torch's random numbers."""
    if model == "small-cnn":
        return small_cnn(channels, classes)
    if model == "resnet50":
        return resnet50(channels, classes)
    return Recurrent({"lstm": nn.LSTM, "gru": nn.GRU}[model], channels, classes)


def parts_of(network: Any) -> list[Any]:
    """Return the parts of a network of patches that produce nearly all activations."""
    return [part for part in network.children() if isinstance(part, nn.Sequential | Bottleneck)]


def parameter_count(network: Any) -> int:
    """Return the number of trained parameters."""
    return sum(parameter.numel() for parameter in network.parameters())


def loss_of(settings: Settings, outputs: Any, labels: Any) -> Any:
    """Return the mean cross entropy, for patches of each class separately, since they have several."""
    if settings.model in PATCH_MODELS:
        return torch.nn.functional.binary_cross_entropy_with_logits(outputs.float(), labels)
    return torch.nn.functional.cross_entropy(outputs.float(), labels)


def samples_of(settings: Settings) -> Samples:
    """Return the data for the network."""
    kind = Patches if settings.model in PATCH_MODELS else Sequences
    return kind(settings.seed, settings.samples, settings.size, settings.channels, settings.classes)
