"""Find out which MPI library is installed, and which of its variables can be tuned."""

import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from objectives.base import PlanError
from objectives.mpi import intel, mpich, openmpi
from objectives.mpi.knobs import Knobs
from objectives.mpi.options import MpiOptions
from objectives.probe import Probe
from spaces.parameters.problem import Problem

Name = Literal["Open MPI", "MPICH", "Intel MPI"]

_INSTALL = "apt-get install libopenmpi-dev gcc, or `module load openmpi`"


@dataclass(frozen=True)
class Library:
    """An MPI library, its compiler, and what is tuned of it."""

    name: Name
    version: str
    compiler: str
    knobs: Knobs


def find_library(options: MpiOptions, here: Probe) -> Library:
    """Return the library of the compiler in the options.

    Raises:
        PlanError: There is no such compiler, or its library does not list its variables.
    """
    compiler = shutil.which(options.compiler)
    if compiler is None:
        msg = f"the compiler {options.compiler!r}, which builds the benchmark, was not found: {_INSTALL}"
        raise PlanError(Problem(msg, "options.compiler"))
    compiler = str(Path(compiler).absolute())
    # Look beside the compiler first: tools on the search path may belong to another library.
    for folders in (str(Path(compiler).parent), os.environ.get("PATH", "")):
        for tool, read in _TOOLS.items():
            path = shutil.which(tool, path=folders)
            if path is not None and (found := read(options, here, path, compiler)) is not None:
                return found
    msg = f"{compiler} was found, but none of {', '.join(_TOOLS)}, which list its library's variables: {_INSTALL}"
    raise PlanError(Problem(msg, "options.compiler"))


def _open_mpi(options: MpiOptions, here: Probe, path: str, compiler: str) -> Library | None:
    version = here.run("version", (path, "--version"))
    listed = here.run("variables", (path, "--all", "--level", "9", "--parsable"))
    if version is None or listed is None or not (match := re.search(r"Open MPI v(\S+)", version.stdout)):
        return None
    known = openmpi.parse_variables(listed.stdout)
    return Library("Open MPI", match[1], compiler, openmpi.knobs(known, options.collectives, options.knobs))


def _mpich(options: MpiOptions, here: Probe, path: str, compiler: str) -> Library | None:
    program = shutil.which("mpichversion", path=str(Path(path).parent))
    version = here.run("version", (program,)) if program else None
    listed = here.run("variables", (path,))
    if version is None or listed is None or not (match := re.search(r"MPICH Version:\s*(\S+)", version.stdout)):
        return None
    return Library("MPICH", match[1], compiler, mpich.knobs(mpich.parse_variables(listed.stdout), options.collectives))


def _intel(options: MpiOptions, here: Probe, path: str, compiler: str) -> Library | None:
    version = here.run("version", (path, "--version"))
    match = re.search(r"Version\s+(\S+)", version.stdout) if version else None
    return Library("Intel MPI", match[1], compiler, intel.knobs(options.collectives)) if match else None


_TOOLS: dict[str, Callable[[MpiOptions, Probe, str, str], Library | None]] = {
    "ompi_info": _open_mpi,
    "mpivars": _mpich,
    "mpiexec.hydra": _intel,
}
