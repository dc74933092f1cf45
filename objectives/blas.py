"""The BLAS libraries that a dynamically linked program can use here, without touching the system's setting.

Debian keeps every BLAS in a folder of its own (`/usr/lib/x86_64-linux-gnu/openblas-pthread/libblas.so.3`) and an
alternative points to one of them; a program takes another one through LD_LIBRARY_PATH.
"""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from objectives.linked_libraries import find_linked_libraries, linear_algebra, linear_algebra_digest

LIBRARY = "libblas.so.3"
# Of all libraries, those for linear algebra and for threads: others (libevent_pthreads) have their own reasons.
_CONCERNED = re.compile(r"lib(gomp|iomp|omp\b|omp5|blas|openblas|blis|mkl|armpl|sci_|flexiblas)")
_THREADED = re.compile(r"pthread|openmp|mkl|lib(?:gomp|iomp|omp)|blasp|openblas|_mp\b")
_SERIAL = re.compile(r"serial|sequential|reference|atlas")


@dataclass(frozen=True)
class Blas:
    """A BLAS library: its name, the folder that a program finds it through, and whether it uses threads.

    `digest` is that of all files that do the linear algebra of a program which uses it.
    """

    name: str
    folder: Path
    threaded: bool
    digest: str = ""

    def library_path(self, inherited: str = "") -> str:
        """Return the value of LD_LIBRARY_PATH that selects this library."""
        return f"{self.folder}:{inherited}" if inherited else str(self.folder)


def system_blas(libraries: dict[str, Path | None]) -> str | None:
    """Return the name of the BLAS that a program with these libraries uses now; None if it is not Debian's kind."""
    path = libraries.get(LIBRARY)
    return _name(path.resolve().parent) if path else None


def uses_threads(libraries: dict[str, Path | None]) -> bool:
    """Tell whether a program with these libraries starts threads by itself: OpenMP, or a threaded BLAS."""
    concerned = {name: path for name, path in libraries.items() if _CONCERNED.match(name)}
    resolved = [name if path is None else f"{name} {path.resolve()}" for name, path in concerned.items()]
    return any(_THREADED.search(text) and not _SERIAL.search(text) for text in resolved)


def find(program: Path, folders: Sequence[Path] | None = None) -> tuple[Blas, ...]:
    """Return the libraries that `program` can use instead of its own, each seen to be found by the loader."""
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
    """Return the BLAS that a program with these libraries uses by default, and what else it may use, with digests."""
    name = system_blas(dict(libraries)) or ", ".join(linear_algebra(libraries))
    own = f"{name} {linear_algebra_digest(libraries)}" if name else "linked"
    return {"blas": own} | {f"blas {blas.name}": blas.digest for blas in choices}


def default_folders() -> tuple[Path, ...]:
    """Return the folders that hold one folder a BLAS: this installation's own, then the system's."""
    return (Path(sys.prefix) / "share" / "autotune" / "blas", *sorted(Path("/usr/lib").glob("*-linux-gnu*")))


def _is_usable(blas: Blas, libraries: Mapping[str, Path | None]) -> bool:
    path = libraries.get(LIBRARY)
    return path is not None and path.parent == blas.folder and None not in libraries.values()


def _is_threaded(library: Path) -> bool:
    name = _name(library.parent)
    return not _SERIAL.search(name) and bool(_THREADED.search(name) or uses_threads(find_linked_libraries(library)))


def _name(folder: Path) -> str:
    return "reference" if folder.name in {"blas", "lapack"} else folder.name
