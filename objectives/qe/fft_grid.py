"""The sides of pw.x's FFT grids, from the cell and a cut-off (FFTXlib: realspace_grid_init, good_fft_order)."""

import math
from itertools import product

import numpy as np

from objectives.qe.lattice import Lattice

_FACTORS = (2, 3, 5)  # what FFTW, MKL and pw.x's own FFT like; only ESSL takes 7 and 11, too


def grid(lattice: Lattice, cutoff_ry: float, factors: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the sides of the grid that holds all G with G^2 < the cut-off; each is a multiple of its factor."""
    radius_squared = cutoff_ry / (2 * math.pi / lattice.alat) ** 2
    lengths = np.linalg.norm(lattice.vectors, axis=1)
    most = [int(math.sqrt(radius_squared) * length) + 1 for length in lengths]
    reciprocal = lattice.reciprocal
    reached = np.zeros(3, dtype=int)
    plane = np.array(list(product(range(-most[0], most[0] + 1), range(-most[1], most[1] + 1))))
    in_plane = plane @ reciprocal[:2]
    for k in range(most[2] + 1):  # -G is as long as G
        inside = ((in_plane + k * reciprocal[2]) ** 2).sum(axis=1) < radius_squared
        if inside.any():
            reached = np.maximum(reached, [*np.abs(plane[inside]).max(axis=0), k])
    sides = [_good(2 * int(reach) + 1, factor) for reach, factor in zip(reached, factors, strict=True)]
    return sides[0], sides[1], sides[2]


def _good(least: int, factor: int) -> int:
    side = least
    while side % factor or not _is_good(side):
        side += 1
    return side


def _is_good(side: int) -> bool:
    for factor in _FACTORS:
        while side % factor == 0:
            side //= factor
    return side == 1
