"""Detect which MPI start command this machine has."""

import ctypes
import os
import re
import shutil
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from launchers.environment import job_environment
from launchers.mpi import MpiFlavour, mpi_environment, start_commands
from launchers.mpi.open_mpi import OPEN_MPI, uses_prrte
from launchers.software.ask import find_printed_text

# On a login node `mpirun` may be a script that contacts a licence server or a slow file system.
_PATIENCE_S = 20.0


def parse_flavour(version_text: str, path: str = "mpirun") -> MpiFlavour | None:
    """Return the flavour whose `--version` output this is; None if no known start command prints it."""
    for kind in start_commands():
        version = kind.version_of(version_text)
        if version is not None:
            return MpiFlavour(kind, version, path)
    return None


@cache
def detect(path: str | None = None) -> MpiFlavour | None:
    """Return the first known MPI start command on the search path; None if no known one is there.

    The answer is cached per search path, which by default is that of this process.

    Raises:
        OSError: A command cannot be run at the moment. Taking the next one would change the study.
    """
    for command in dict.fromkeys(name for kind in start_commands() for name in kind.commands):
        executable = shutil.which(command, path=path)
        if executable is None:
            continue
        flavour = parse_flavour(_answer(executable, "--version"), executable)
        if flavour is not None:
            return MpiFlavour(flavour.kind, flavour.version, executable, single_copy=can_read_memory())
    return None


def lacks_tm(flavour: MpiFlavour) -> bool:
    """Whether an Open MPI was built without PBS's own way of starting processes; False if that is not known."""
    if flavour.kind is not OPEN_MPI:
        return False
    program = Path(shutil.which(flavour.path) or flavour.path)
    text = _answer(str(program.with_name("prte_info" if uses_prrte(flavour) else "ompi_info")), "--parsable")
    starters = set(re.findall(r"^mca:plm:(\w+):", text, re.MULTILINE))
    return bool(starters) and "tm" not in starters


def _answer(command: str, option: str) -> str:
    # Some releases of Open MPI refuse even `--version` to root.
    allowed: Mapping[str, str] = mpi_environment(MpiFlavour(OPEN_MPI, (5,)), user_id=os.geteuid())
    return find_printed_text([command, option], _PATIENCE_S, job_environment(os.environ, allowed))


class _Part(ctypes.Structure):
    """`struct iovec`, readv(2)."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def can_read_memory() -> bool:
    """Whether process_vm_readv(2) works here. MPI uses it to copy large messages once; many containers forbid it."""
    source, target = ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(1)
    local, remote = (_Part(ctypes.addressof(buffer), 1) for buffer in (target, source))
    try:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except AttributeError:
        return False
    read.restype = ctypes.c_ssize_t
    return bool(read(os.getpid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == 1)
