"""The BLAS libraries that a dynamically linked program can use here without changing the system's setting.

Debian keeps each BLAS in a folder of its own (`/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3`), and an
alternative points to one of them. LD_LIBRARY_PATH makes a program load another one.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from objectives.linked_libraries import find_linked_libraries, linear_algebra, linear_algebra_digest

LIBRARY = "libblas.so.3"
# Libraries for linear algebra and threads; others that match `_THREADED`, such as libevent_pthreads, do not count.
_CONCERNED = re.compile(r"lib(gomp|iomp|omp\b|omp5|blas|openblas|blis|mkl|armpl|sci_|flexiblas)")
_THREADED = re.compile(r"pthread|openmp|mkl|lib(?:gomp|iomp|omp)|blasp|openblas|_mp\b")
_SERIAL = re.compile(r"serial|sequential|reference|atlas")


@dataclass(frozen=True)
class Blas:
    """A BLAS library.

    Args:
        name: Its name, that of its folder.
        folder: The folder in which a program finds it.
        threaded: Whether it uses threads.
        digest: The digest of all files that do the linear algebra of a program that uses it.
    """

    name: str
    folder: Path
    threaded: bool
    digest: str = ""

    def library_path(self, inherited: str = "") -> str:
        """Return the value of LD_LIBRARY_PATH that selects this library."""
        return f"{self.folder}:{inherited}" if inherited else str(self.folder)


def system_blas(libraries: dict[str, Path | None]) -> str | None:
    """Return the name of the BLAS that a program with these libraries uses now; None if Debian does not manage it."""
    path = libraries.get(LIBRARY)
    return _name(path.resolve().parent) if path else None


def uses_threads(libraries: dict[str, Path | None]) -> bool:
    """Return whether a program with these libraries starts threads itself, by OpenMP or a threaded BLAS."""
    concerned = {name: path for name, path in libraries.items() if _CONCERNED.match(name)}
    resolved = [name if path is None else f"{name} {path.resolve()}" for name, path in concerned.items()]
    return any(_THREADED.search(text) and not _SERIAL.search(text) for text in resolved)


def find(program: Path, folders: Sequence[Path] | None = None) -> tuple[Blas, ...]:
    """Return the libraries that `program` can use instead of its own; the loader was asked for each of them."""
    own = find_linked_libraries(program)
    if LIBRARY not in own:
        return ()
    found: dict[str, Blas] = {}
    system = system_blas(own)
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    for folder in default_folders() if folders is None else folders:
        for library in sorted(folder.glob(f"*/{LIBRARY}")):
            name = _name(library.parent)
            if name == system or name in found:
                continue
            blas = Blas(name, library.parent, _is_threaded(library))
            libraries = find_linked_libraries(program, blas.library_path(inherited))
            if _is_usable(blas, libraries):
                found[name] = replace(blas, digest=linear_algebra_digest(libraries))
    return tuple(found.values())


def identity(libraries: Mapping[str, Path | None], choices: Sequence[Blas]) -> dict[str, str]:
    """Return the BLAS that a program with these libraries uses by default, and its other choices, with digests."""
    name = system_blas(dict(libraries)) or ", ".join(linear_algebra(libraries))
    own = f"{name} {linear_algebra_digest(libraries)}" if name else "linked"
    return {"blas": own} | {f"blas {blas.name}": blas.digest for blas in choices}


def default_folders() -> tuple[Path, ...]:
    """Return the folders with one subfolder for each BLAS: this installation's first, then the system's."""
    return (Path(sys.prefix) / "share" / "autotune" / "blas", *sorted(Path("/usr/lib").glob("*-linux-gnu*")))


def _is_usable(blas: Blas, libraries: Mapping[str, Path | None]) -> bool:
    path = libraries.get(LIBRARY)
    return path is not None and path.parent == blas.folder and None not in libraries.values()


def _is_threaded(library: Path) -> bool:
    name = _name(library.parent)
    return not _SERIAL.search(name) and bool(_THREADED.search(name) or uses_threads(find_linked_libraries(library)))


def _name(folder: Path) -> str:
    return "reference" if folder.name in {"blas", "lapack"} else folder.name
