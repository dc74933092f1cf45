"""The library that times a run's MPI calls; it is built once on this machine with whatever C compiler it has."""

import shutil
from collections.abc import Mapping
from pathlib import Path

from launchers.software.digest import file_digest, text_digest
from objectives.made_file import NotMadeError, make_once, path_of_made_file

SOURCES = tuple(Path(__file__).with_name(name) for name in ("mpitime.c", "mpicalls.h"))
"""Its sources; the first is compiled and includes the other."""

NAME = "autotune-mpitime.so"
FOLDER_VARIABLE = "AUTOTUNE_MPI_TIMES"
PRELOAD = "LD_PRELOAD"

_COMPILERS = ("cc", "gcc", "clang", "mpicc")


def build() -> Path:
    """Return the library; build it if it does not exist yet.

    Raises:
        NotMadeError: There is no compiler, it fails, or nothing can be written.
    """
    command = _command()
    if command is None:
        msg = f"there is no C compiler: none of {', '.join(_COMPILERS)} is on the search path"
        raise NotMadeError(msg)
    try:
        return make_once(NAME, (command,), SOURCES)
    except OSError as error:
        msg = f"{error.filename or NAME}: {error.strerror or error}"
        raise NotMadeError(msg) from error


def built_path() -> Path | None:
    """Return where the library lies once it is built; None if no compiler could build it."""
    command = _command()
    return None if command is None else path_of_made_file(NAME, (command,), SOURCES)


def identity() -> str:
    """Return what distinguishes runs with this library from others."""
    return f"timed by a library that is loaded first, {text_digest(' '.join(map(file_digest, SOURCES)))}"


def with_library(environment: Mapping[str, str], library: Path, folder: Path) -> dict[str, str]:
    """Return the variables of a job with this library preloaded after those that the job preloads itself."""
    loaded = [environment[PRELOAD]] if environment.get(PRELOAD) else []
    return {**environment, PRELOAD: ":".join([*loaded, str(library)]), FOLDER_VARIABLE: str(folder.resolve())}


def without_library(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a job without the library, for runs that are not measured."""
    others = {name: value for name, value in environment.items() if name not in {PRELOAD, FOLDER_VARIABLE}}
    if PRELOAD not in environment:
        return others
    loaded = [path for path in environment[PRELOAD].split(":") if Path(path).name != NAME]
    return others | ({PRELOAD: ":".join(loaded)} if loaded else {})


def _command() -> tuple[str, ...] | None:
    compiler = next((name for name in _COMPILERS if shutil.which(name)), None)
    return None if compiler is None else (compiler, "-O2", "-shared", "-fPIC", "-o", NAME, SOURCES[0].name, "-ldl")
