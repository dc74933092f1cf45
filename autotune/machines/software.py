"""Detect the software that builds, links and starts programs on this machine."""

import os
import re
import shutil
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from autotune.machines.description import Software
from autotune.machines.this_machine import read_or_empty
from launchers.batch_systems.registry import all_batch_systems
from launchers.detect import detect
from launchers.software.ask import ask
from objectives.blas import LIBRARY, system_blas

# Libraries for linear algebra that a program may be linked with, the usual name first.
BLAS_LIBRARIES = (LIBRARY, "libflexiblas.so.3", "libopenblas.so.0", "libmkl_rt.so.2", "libmkl_rt.so", "libblis.so.4")
_PATIENCE_S = 10.0
_COMPILERS = ("gcc", "cc", "clang")


def find_software(*, programs: bool, root: Path = Path("/")) -> tuple[Software, dict[str, str]]:
    """Return the installed software, and the source of each fact about it.

    Without `programs` no program is started, so the MPI and the compiler remain unknown.
    """
    sources = {}
    system = re.search(r'^PRETTY_NAME="?([^"\n]+)', read_or_empty(root / "etc/os-release"), re.MULTILINE)
    if system:
        sources["software.system"] = "/etc/os-release"
    blas = find_blas()
    if blas is not None:
        sources["software.blas"] = str(blas.resolve())
    flavour = detect() if programs else None
    if flavour is not None:
        sources["software.mpi"] = f"{flavour.path} --version"
    path = next(filter(None, map(shutil.which, _COMPILERS)), None) if programs else None
    compiler = _first_line([path, "--version"]) if path else ""
    if compiler:
        sources["software.compiler"] = f"{path} --version"
    software = Software(
        system=system[1] if system else None,
        mpi=f"{flavour.kind} {'.'.join(map(str, flavour.version))}".strip() if flavour else None,
        blas=blas_name(blas) if blas else None,
        compiler=compiler or None,
    )
    return software, sources


def find_blas(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the BLAS library that a program would load here, without loading it; None if no library is found.

    It searches the folders of LD_LIBRARY_PATH, then the usual ones, but not the loader's cache.
    """
    triplet = sysconfig.get_config_var("MULTIARCH") or ""
    usual = [f"/usr/lib/{triplet}", "/usr/lib64", "/usr/lib", "/lib64", "/lib", "/usr/local/lib"]
    folders = [*filter(None, environment.get("LD_LIBRARY_PATH", "").split(":")), *usual]
    for name in BLAS_LIBRARIES:
        for folder in folders:
            if (path := Path(folder, name)).exists():
                return path
    return None


def blas_name(path: Path) -> str:
    """Return the name of a BLAS library: `reference`, `openblas-pthread`, or its file's name."""
    return (system_blas({LIBRARY: path}) if path.name == LIBRARY else None) or path.resolve().name


def find_scheduler(environment: Mapping[str, str] = os.environ) -> str | None:
    """Return the batch system of the allocation that this process runs in, or else that of the installed commands.

    The allocation decides first, since some sites install wrappers with the names of another scheduler's commands.
    """
    systems = all_batch_systems()
    for system in systems:
        if environment.get(system.session_variable):
            return system.name
    for system in systems:
        if any(shutil.which(command, path=environment.get("PATH")) for command in system.marker_commands):
            return system.name
    return None


def _first_line(argv: list[str]) -> str:
    try:
        text = ask(argv, _PATIENCE_S).text
    except OSError:
        return ""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")
