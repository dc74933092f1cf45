"""The sequences of the synthetic data. Bases are 0..3 in the order A, T, C, G, so `base ^ 1` is the complement."""

import numpy as np

BASES = "ATCG"

# Position frequencies of CTCF: JASPAR MA0139.1 (19 bases, unchanged in JASPAR 2014 to 2026). JASPAR's data are open
# (CC BY 4.0): I. Rauluseviciute et al., Nucleic Acids Research 52 (2024), D174; https://jaspar.elixir.no.
CTCF = {
    "A": (87, 167, 281, 56, 8, 744, 40, 107, 851, 5, 333, 54, 12, 56, 104, 372, 82, 117, 402),
    "C": (291, 145, 49, 800, 903, 13, 528, 433, 11, 0, 3, 12, 0, 8, 733, 13, 482, 322, 181),
    "G": (76, 414, 449, 21, 0, 65, 334, 48, 32, 903, 566, 504, 890, 775, 5, 507, 307, 73, 266),
    "T": (459, 187, 134, 36, 2, 91, 11, 324, 18, 3, 9, 341, 8, 71, 67, 17, 37, 396, 59),
}
LENGTH = len(CTCF["A"])

# Frequency of each base after another, in thousandths of all pairs: rounded values of a mammal's genome, the same on
# both strands. CG is four times rarer than by chance: A. Bird, Nucleic Acids Research 8 (1980), 1499.
PAIRS = {
    "A": {"A": 98, "T": 77, "C": 50, "G": 70},
    "T": {"A": 64, "T": 98, "C": 60, "G": 73},
    "C": {"A": 73, "T": 70, "C": 52, "G": 10},
    "G": {"A": 60, "T": 50, "C": 43, "G": 52},
}

Random = np.random.Generator
Bases = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


def background(random: Random, windows: int, length: int) -> Bases:
    """Return random sequences (windows, length) with the frequencies of `PAIRS`."""
    pairs = np.array([[PAIRS[a][b] for b in BASES] for a in BASES], dtype=np.float64)
    follows = np.cumsum(pairs / pairs.sum(axis=1, keepdims=True), axis=1)[:, :3]
    start = np.cumsum(pairs.sum(axis=1) / pairs.sum())[:3]
    found = np.empty((length, windows), dtype=np.uint8)
    found[0] = _drawn(random, np.broadcast_to(start, (windows, 3)))
    for position in range(1, length):
        found[position] = _drawn(random, follows[found[position - 1]])
    return np.ascontiguousarray(found.T)


def motifs(random: Random, number: int) -> Bases:
    """Return sequences (number, 19) with the frequencies of CTCF's sites, half of them from the other strand."""
    counts = np.array([CTCF[base] for base in BASES], dtype=np.float64).T
    below = np.cumsum(counts / counts.sum(axis=1, keepdims=True), axis=1)[:, :3]
    forward = _drawn(random, np.broadcast_to(below, (number, LENGTH, 3)))
    reverse = forward[:, ::-1] ^ 1
    return np.where(random.random((number, 1)) < 0.5, forward, reverse).astype(np.uint8)


def _drawn(random: Random, below: "np.ndarray[tuple[int, ...], np.dtype[np.float64]]") -> Bases:
    """Draw bases; `below` has for each the cumulated probabilities of the first three."""
    drawn: Bases = (random.random(below.shape[:-1])[..., None] >= below).sum(axis=-1, dtype=np.uint8)
    return drawn
