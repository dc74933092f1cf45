"""Generated windows of DNA, to tune without a download.

The task is realistic to tune, but not biology. The sequence is random with realistic frequencies of pairs of bases, and
contains motifs drawn from CTCF's position frequencies. The fifth channel is a *simulated* accessibility: peaks of
random height and width, with noise. A motif is a site (label 1 over its 19 bases) only where the chromatin is open.
Motifs in closed chromatin, and open chromatin without a motif, are decoys: neither channel suffices alone. Some motifs
are weak and some peaks low, so that no network is perfect.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from . import motif

SLOT = 256  # bases with at most one motif or peak
# Shares of slots with a motif in a peak, a motif alone, a peak alone. Then nearly half of the windows of two slots have
# a site, and three of two hundred bases are in one.
SITES, LONE_MOTIFS, LONE_PEAKS = 0.25, 0.25, 0.2
OPEN = 0.5  # share of the usual height of a peak from which chromatin is open
CLOSED_SIGNAL = 0.2
BIN = 8  # neighbouring bases with the same noise, since they share reads
AT_ONCE = 512  # windows per part, to save memory
SPLITS = {"train": 0, "validation": 1}  # different random streams, so that no window is in both


@dataclass(frozen=True)
class Generated:
    """Windows, all (n, length): bases as 0..3 in the order A, T, C, G, the signal, and labels, 0 or 1."""

    bases: Any
    signal: Any
    labels: Any

    def __len__(self) -> int:
        return len(self.bases)

    @property
    def length(self) -> int:
        """The number of bases of a window."""
        return int(self.bases.shape[1])

    def batch(self, chosen: Any) -> tuple[Any, Any]:
        """Return float32 arrays: inputs (n, length, 5), and labels (n, length, 1)."""
        bases = self.bases[chosen]
        inputs = np.empty((*bases.shape, 5), dtype=np.float32)
        inputs[..., :4] = np.eye(4, dtype=np.float32)[bases]
        inputs[..., 4] = self.signal[chosen]
        return inputs, self.labels[chosen][..., None].astype(np.float32)


def generate(split: str, windows: int, length: int, seed: int) -> Generated:
    """Return the windows of a split ("train" or "validation"); they depend only on the seed."""
    parts = [
        _part(np.random.default_rng([seed, SPLITS[split], begin]), min(AT_ONCE, windows - begin), length)
        for begin in range(0, windows, AT_ONCE)
    ]
    return Generated(
        *(np.concatenate([getattr(part, name) for part in parts]) for name in ("bases", "signal", "labels"))
    )


def _part(random: motif.Random, windows: int, length: int) -> Generated:
    slots = max(1, length // SLOT)
    width = length // slots
    kind = random.random((windows, slots))
    has_motif = kind < SITES + LONE_MOTIFS
    has_peak = (kind < SITES) | ((kind >= SITES + LONE_MOTIFS) & (kind < SITES + LONE_MOTIFS + LONE_PEAKS))
    starts = np.arange(slots) * width + random.integers(0, width - motif.LENGTH + 1, (windows, slots))
    openness = _openness(random, np.where(has_peak, starts + motif.LENGTH // 2, -1), length)
    bases = motif.background(random, windows, length)
    labels = np.zeros((windows, length), dtype=np.uint8)
    rows, columns = np.nonzero(has_motif)
    covered = starts[rows, columns][:, None] + np.arange(motif.LENGTH)
    bases[rows[:, None], covered] = motif.motifs(random, len(rows))
    labels[rows[:, None], covered] = (openness[rows, covered[:, motif.LENGTH // 2]] > OPEN)[:, None]
    noise = random.gamma(4.0, 0.25, (windows, -(-length // BIN))).repeat(BIN, axis=1)[:, :length]
    return Generated(bases, ((CLOSED_SIGNAL + openness) * noise).astype(np.float32), labels)


def _openness(random: motif.Random, near: Any, length: int) -> Any:
    """Return the openness of bases (windows, length): a bell around each place (windows, slots) that is >= 0."""
    rows, columns = np.nonzero(near >= 0)
    centre = near[rows, columns] + random.normal(0.0, 15.0, len(rows))
    width = random.uniform(25.0, 60.0, len(rows))
    height = random.lognormal(0.0, 0.5, len(rows))
    found = np.zeros((len(near), length))
    positions = np.rint(centre).astype(np.int64)[:, None] + np.arange(-180, 181)
    bells = height[:, None] * np.exp(-0.5 * ((positions - centre[:, None]) / width[:, None]) ** 2)
    inside = (positions >= 0) & (positions < length)
    np.add.at(found, (np.broadcast_to(rows[:, None], positions.shape)[inside], positions[inside]), bells[inside])
    return found
