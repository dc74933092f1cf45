"""The shared libraries of a program: which files it loads, and their digests.

A library may change during a study while the program stays the same.
"""

import os
import platform
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from launchers.software.ask import ask
from launchers.software.digest import file_digest, text_digest
from launchers.software.transient_errors import is_transient

_TIMEOUT_S = 30


def find_linked_libraries(program: Path, library_path: str | None = None) -> dict[str, Path | None]:
    """Return what `program` is linked to at run time, by library name; None for a library that is not found.

    A statically linked program, or one that `ldd` cannot read, has none.

    Raises:
        OSError: `ldd` cannot run at this moment; without its answer the identity would be that of another program.
    """
    ldd = shutil.which("ldd")
    if ldd is None:
        return {}
    environment = dict(os.environ)
    if library_path is not None:
        environment["LD_LIBRARY_PATH"] = library_path
    try:
        printed = ask([ldd, str(program)], _TIMEOUT_S, environment=environment).text
    except OSError as error:
        if is_transient(error):
            raise
        return {}
    found: dict[str, Path | None] = {}
    for line in printed.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow:
            found[name] = None if rest.startswith("not found") else Path(re.sub(r" \(0x[0-9a-f]+\)$", "", rest))
    return found


_LINEAR_ALGEBRA = re.compile(
    r"lib(blas|cblas|f77blas|lapack|openblas|flexiblas|blis|flame|mkl_|armpl|sci_|nvpl_|essl|[st]?atlas)"
)
_KINDS = {
    "fft": re.compile(r"libfftw"),
    "scalapack": re.compile(r"lib(scalapack|elpa)"),
    "mpi library": re.compile(r"libmpi"),
}


def library_identity(libraries: Mapping[str, Path | None]) -> dict[str, str]:
    """Return the libraries besides BLAS that determine a program's speed, each with the digest of its file.

    Statically linked libraries are covered by the program's own digest.
    """
    described = {kind: _describe(libraries, pattern) for kind, pattern in _KINDS.items()}
    libc = " ".join(platform.libc_ver()).strip()
    return {kind: text for kind, text in described.items() if text} | {"libc": libc or "unknown"}


def linear_algebra(libraries: Mapping[str, Path | None]) -> tuple[str, ...]:
    """Return the names of the libraries that do a program's linear algebra."""
    return tuple(sorted(name for name in libraries if _LINEAR_ALGEBRA.match(name)))


def linear_algebra_digest(libraries: Mapping[str, Path | None]) -> str:
    """Return one digest of the files of all libraries that do the linear algebra.

    All of them, since `libblas.so.3` is often a thin layer over the library that does the work.
    """
    return text_digest(_describe(libraries, _LINEAR_ALGEBRA))


def _describe(libraries: Mapping[str, Path | None], pattern: re.Pattern[str]) -> str:
    concerned = {name: path for name, path in sorted(libraries.items()) if pattern.match(name)}
    return ", ".join(f"{name} {file_digest(path) if path else 'not found'}" for name, path in concerned.items())
