"""Products of matrices by a chosen BLAS library, for `bigdata.py`.

NumPy's own BLAS cannot be replaced by a setting, so other libraries are opened here and called by Fortran's
conventions. Fortran stores matrices by columns: a NumPy matrix of n rows of p numbers is, to Fortran, its transpose,
p x n.

`x` always has the shape (n, p); all arrays have 64-bit numbers, stored by rows.
"""

import ctypes
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]

OWN = "numpy"
LIBRARY = "libblas.so.3"
REFERENCE = "reference"


class Blas(Protocol):
    """Products of matrices."""

    def gram(self, x: Matrix, into: Matrix) -> None:
        """Add the lower half of x'x to `into`, (p, p); the upper half may change, too."""

    def times(self, x: Matrix, points: Matrix) -> Matrix:
        """Return the product of each row with each of the points (k, p): (n, k)."""

    def sums(self, weights: Matrix, x: Matrix) -> Matrix:
        """Return the sums of the rows by each column of weights (n, k): (k, p)."""


class NumPy:
    """Products by NumPy's own library."""

    def gram(self, x: Matrix, into: Matrix) -> None:
        """Add x'x."""
        into += x.T @ x

    def times(self, x: Matrix, points: Matrix) -> Matrix:
        """Return each row's product with each point."""
        return x @ points.T

    def sums(self, weights: Matrix, x: Matrix) -> Matrix:
        """Return weighted sums of the rows."""
        return weights.T @ x


class Fortran:
    """Products by a library with Fortran's interface: dsyrk, dgemm, dgemv."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        self.dsyrk, self.dgemm, self.dgemv = library.dsyrk_, library.dgemm_, library.dgemv_

    def gram(self, x: Matrix, into: Matrix) -> None:
        """Add the lower half of x'x, which is the upper one to Fortran."""
        n, p = x.shape
        _call(self.dsyrk, "U", "N", p, n, 1.0, x, p, 1.0, into, p)

    def times(self, x: Matrix, points: Matrix) -> Matrix:
        """Return each row's product with each point."""
        (n, p), k = x.shape, len(points)
        found = np.empty((n, k))
        if k == 1:
            _call(self.dgemv, "T", p, n, 1.0, x, p, points, 1, 0.0, found, 1)
        elif n:
            _call(self.dgemm, "T", "N", k, n, p, 1.0, points, p, x, p, 0.0, found, k)
        return found

    def sums(self, weights: Matrix, x: Matrix) -> Matrix:
        """Return weighted sums of the rows."""
        (n, p), k = x.shape, weights.shape[1]
        found = np.zeros((k, p))
        if n:
            _call(self.dgemm, "N", "T", p, k, n, 1.0, x, p, weights, k, 0.0, found, p)
        return found


def libraries() -> dict[str, Path]:
    """Return the installed libraries by the names of their folders, those beside this Python first.

    Debian has a folder for each, and so has `./run`, which unpacks some for the studies.
    """
    found: dict[str, Path] = {}
    for folder in _folders():
        for library in sorted(folder.glob(f"*/{LIBRARY}")):
            name = REFERENCE if library.parent.name == "blas" else library.parent.name
            found.setdefault(name, library)
    return found


def open_library(name: str) -> Blas:
    """Return a library by its name; `numpy` is NumPy's own."""
    if name == OWN:
        return NumPy()
    there = libraries()
    if name not in there:
        sys.exit(f"error: no BLAS library {name!r} here; there are {', '.join([OWN, *there])}")
    return Fortran(there[name])


def _folders() -> Iterator[Path]:
    yield Path(sys.prefix).parent / "blas"
    yield from sorted(Path("/usr/lib").glob("*-linux-gnu*"))


def _call(function: Any, *given: object) -> None:  # noqa: ANN401  of a library that has no types
    # All by reference, as in Fortran; then the lengths of the texts, which compilers add.
    arguments: list[Any] = []
    for one in given:
        if isinstance(one, str):
            arguments.append(ctypes.c_char_p(one.encode()))
        elif isinstance(one, int):
            arguments.append(ctypes.byref(ctypes.c_int(one)))
        elif isinstance(one, float):
            arguments.append(ctypes.byref(ctypes.c_double(one)))
        else:
            arguments.append(_address(one))
    lengths = [ctypes.c_size_t(1) for one in given if isinstance(one, str)]
    function(*arguments, *lengths)


def _address(array: Any) -> ctypes.c_void_p:  # noqa: ANN401  checked here
    if not array.flags.c_contiguous or array.dtype != np.float64:
        msg = f"an array of 64-bit numbers, rows one after the other, got {array.dtype} with strides {array.strides}"
        raise ValueError(msg)
    return ctypes.c_void_p(array.ctypes.data)
