"""The files behind the libraries of a program: they may change under a study while the program stays the same."""

import platform
import re
from collections.abc import Mapping
from pathlib import Path

from launchers.software.digest import file_digest, text_digest

_LINEAR_ALGEBRA = re.compile(
    r"lib(blas|cblas|f77blas|lapack|openblas|flexiblas|blis|flame|mkl_|armpl|sci_|nvpl_|essl|[st]?atlas)"
)
_KINDS = {
    "fft": re.compile(r"libfftw"),
    "scalapack": re.compile(r"lib(scalapack|elpa)"),
    "mpi library": re.compile(r"libmpi"),
}


def identity(libraries: Mapping[str, Path | None]) -> dict[str, str]:
    """Return the libraries beside BLAS that a program's speed depends on, each with the digest of its file.

    Of what is linked statically there is nothing to say: the program's own digest covers it.
    """
    described = {kind: _described(libraries, pattern) for kind, pattern in _KINDS.items()}
    libc = " ".join(platform.libc_ver()).strip()
    return {kind: text for kind, text in described.items() if text} | {"libc": libc or "unknown"}


def linear_algebra(libraries: Mapping[str, Path | None]) -> tuple[str, ...]:
    """Return the names of the libraries that do a program's linear algebra."""
    return tuple(sorted(name for name in libraries if _LINEAR_ALGEBRA.match(name)))


def linear_algebra_digest(libraries: Mapping[str, Path | None]) -> str:
    """Return one digest of the files of all libraries that do the linear algebra.

    Of all, for a `libblas.so.3` is often a thin layer over the library that does the work.
    """
    return text_digest(_described(libraries, _LINEAR_ALGEBRA))


def _described(libraries: Mapping[str, Path | None], pattern: re.Pattern[str]) -> str:
    concerned = {name: path for name, path in sorted(libraries.items()) if pattern.match(name)}
    return ", ".join(f"{name} {file_digest(path) if path else 'not found'}" for name, path in concerned.items())
