"""The windows for training and validation: generated, or read from a folder."""

import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from . import synthetic
from .refusal import RefusedError
from .settings import STRIDE, SYNTHETIC, Settings

CHANNELS = 5


class Windows(Protocol):
    """Windows of DNA with the labels of their bases."""

    def __len__(self) -> int: ...

    @property
    def length(self) -> int:
        """The number of bases of a window."""

    def batch(self, chosen: Any) -> tuple[Any, Any]:
        """Return float32 arrays of the chosen windows: (n, length, 5), and labels (n, length, 1)."""


@dataclass(frozen=True)
class Splits:
    """Both sets, and their identity, by which a checkpoint of other data is recognised."""

    train: Windows
    validation: Windows
    identity: str


@dataclass(frozen=True)
class Stored:
    """Windows of two files, read when they are needed: `inputs` (n, length, 5), `labels` (n, length, 1)."""

    inputs: Any
    labels: Any
    labels_path: Path

    def __len__(self) -> int:
        return len(self.inputs)

    @property
    def length(self) -> int:
        """The number of bases of a window."""
        return int(self.inputs.shape[1])

    def batch(self, chosen: Any) -> tuple[Any, Any]:
        """Return float32 copies of the chosen windows.

        Raises:
            RefusedError: a label is not from 0 to 1.
        """
        inputs, labels = (np.asarray(part[chosen], dtype=np.float32) for part in (self.inputs, self.labels))
        if not ((labels >= 0) & (labels <= 1)).all():
            raise RefusedError(f"{self.labels_path}: labels are from 0 to 1, got {labels.min():g} to {labels.max():g}")
        return inputs, labels


def load(settings: Settings) -> Splits:
    """Return the windows for the settings.

    Raises:
        RefusedError: a file is missing or has another shape, or no validation window has a site.
    """
    splits = _synthetic(settings) if settings.data == SYNTHETIC else _stored(Path(settings.data), settings)
    if not any(splits.validation.batch([index])[1].any() for index in range(len(splits.validation))):
        raise RefusedError("no base of the validation windows has label 1: give more --validation-windows")
    return splits


def _synthetic(settings: Settings) -> Splits:
    length, seed = settings.length, settings.data_seed
    counts = {"train": settings.windows, "validation": settings.validation_windows}
    assert length is not None
    made = {split: synthetic.generate(split, count, length, seed) for split, count in counts.items() if count}
    identity = f"{SYNTHETIC}, seed {seed}, {counts['train']}+{counts['validation']} windows of {length}"
    return Splits(made["train"], made["validation"], identity)


def _stored(folder: Path, settings: Settings) -> Splits:
    train = _read(folder, "train", settings.windows)
    validation = _read(folder, "validation", settings.validation_windows)
    sizes = f"{len(train)}+{len(validation)} windows of {train.inputs.shape[1]}"
    # Identify files by content, not by path: a node may have its own copy.
    first = [part[:1].tobytes() for one in (train, validation) for part in (one.inputs, one.labels)]
    return Splits(train, validation, f"a folder, {sizes}, sum of the first ones {zlib.crc32(b''.join(first)):08x}")


def _read(folder: Path, split: str, windows: int | None) -> Stored:
    inputs_path, labels_path = folder / f"{split}_x.npy", folder / f"{split}_y.npy"
    inputs, labels = _array(inputs_path, CHANNELS), _array(labels_path, 1)
    if inputs.shape[:2] != labels.shape[:2]:
        raise RefusedError(
            f"{labels_path} has the shape {labels.shape}, but {inputs_path.name} has {inputs.shape}: "
            "a label is needed for each base of each window"
        )
    if windows is not None and windows > len(inputs):
        raise RefusedError(f"{inputs_path} has {len(inputs)} windows, {windows} were asked for")
    return Stored(inputs[:windows], labels[:windows], labels_path)


def _array(path: Path, channels: int) -> Any:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise RefusedError(f"{path} cannot be read as an array of numpy: {error}") from error
    if found.ndim != 3 or found.shape[2] != channels or found.dtype.kind not in "biuf":
        raise RefusedError(
            f"{path} has the shape {found.shape} of {found.dtype}, (windows, length, {channels}) of numbers is needed"
        )
    if not found.shape[0] or not found.shape[1] or found.shape[1] % STRIDE:
        raise RefusedError(
            f"{path} has the shape {found.shape}: the length must be a multiple of {STRIDE}, with windows in it"
        )
    return found
