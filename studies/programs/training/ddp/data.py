"""Generated data: patches with several labels, and sequences with one.

Patches have the shape of BigEarthNet's (Sumbul et al. 2019, arXiv:1902.06148): 12 bands, several of 19 classes each;
their content is generated. A sample depends only on the seed and its index, a batch only on the seed and the step, so
any number of workers sees the same data in the same order.
"""

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np

_PRESENT = 5  # most classes in a patch
_WAVES = 4  # waves across a patch or along a sequence are fewer


class Samples(Protocol):
    """The interface of torch's loader."""

    def __len__(self) -> int:
        """Return the number of samples."""

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return an input and its label."""


class Patches:
    """Patches (channels, size, size) of float32, each with a label (classes) of zeros and ones.

    Each class has its own spectrum and wave length. A patch is the sum of the waves of its classes, each with a random
    phase, plus noise of variance 1.
    """

    def __init__(self, seed: int, samples: int, size: int, channels: int, classes: int) -> None:
        random = np.random.default_rng([seed, 0])
        self._spectra = random.standard_normal((classes, channels), dtype=np.float32)
        self._waves = random.integers(0, _WAVES, (classes, 2))
        self._seed, self._samples, self._size = seed, samples, size

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._samples

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return a patch and its labels."""
        random = np.random.default_rng([self._seed, 1, index])
        classes, channels = self._spectra.shape
        present = random.permutation(classes)[: random.integers(1, min(_PRESENT, classes) + 1)]
        labels = np.zeros(classes, np.float32)
        labels[present] = 1.0
        at = np.linspace(0.0, 2 * np.pi, self._size, endpoint=False, dtype=np.float32)
        down, across = (self._waves[present, axis, None] * at for axis in (0, 1))
        phases = random.uniform(0.0, 2 * np.pi, (len(present), 1, 1))
        patch = random.standard_normal((channels, self._size, self._size), dtype=np.float32)
        textures = 1.0 + np.cos(down[:, :, None] + across[:, None, :] + phases)
        patch += np.tensordot(self._spectra[present].T, textures.astype(np.float32), axes=1)
        return patch, labels


class Sequences:
    """Sequences (size, channels) of float32, each of one class.

    Each class has a frequency, and an amplitude in each channel; a sequence is that wave with a random phase, plus
    noise of variance 1.
    """

    def __init__(self, seed: int, samples: int, size: int, channels: int, classes: int) -> None:
        random = np.random.default_rng([seed, 0])
        self._amplitudes = random.standard_normal((classes, channels), dtype=np.float32)
        self._waves = random.integers(1, _WAVES, classes)
        self._seed, self._samples, self._size = seed, samples, size

    def __len__(self) -> int:
        """Return the number of samples."""
        return self._samples

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        """Return a sequence and its class."""
        random = np.random.default_rng([self._seed, 1, index])
        classes, channels = self._amplitudes.shape
        label = np.int64(random.integers(classes))
        at = np.linspace(0.0, 2 * np.pi, self._size, endpoint=False)
        wave = 1.0 + np.cos(self._waves[label] * at + random.uniform(0.0, 2 * np.pi))
        sequence = random.standard_normal((self._size, channels), dtype=np.float32)
        sequence += np.outer(wave, self._amplitudes[label]).astype(np.float32)
        return sequence, label


class Batches:
    """The indices of one worker's samples, for each step from `first` to before `end`; steps count from 0.

    Each epoch has another order; a last, incomplete batch is not used.
    """

    def __init__(self, seed: int, samples: int, batch_size: int, share: slice, steps: range) -> None:
        self._seed, self._samples, self._batch_size = seed, samples, batch_size
        self._share, self._steps = share, steps

    def __iter__(self) -> Iterator[list[int]]:
        """Yield the indices of each step."""
        epoch, order = -1, np.empty(0, np.int64)
        for step in self._steps:
            of_step, at = divmod(step, self._samples // self._batch_size)
            if of_step != epoch:
                epoch = of_step
                order = np.random.default_rng([self._seed, 2, epoch]).permutation(self._samples)
            yield order[at * self._batch_size :][: self._batch_size][self._share].tolist()
