"""Which MPI start command this machine has."""

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from functools import cache

from launchers.environment import job_environment
from launchers.mpi import MpiFlavour, MpiKind, mpi_environment

_COMMANDS = ("mpirun", "mpiexec", "mpiexec.hydra", "srun")
# On a login node `mpirun` may be a script that asks a licence server or a file system.
_PATIENCE_S = 20.0

# What the commands print about themselves when asked for their version; the first that matches is it.
_VERSIONS = (
    (MpiKind.OPEN_MPI, re.compile(r"\(Open ?MPI\)\s+v?(\d+(?:\.\d+)*)", re.IGNORECASE)),
    (MpiKind.OPEN_MPI, re.compile(r"\(OpenRTE\)\s+v?(\d+(?:\.\d+)*)")),
    (MpiKind.INTEL_MPI, re.compile(r"Intel\(R\) MPI Library.*?Version\s+(\d+(?:\.\d+)*)", re.DOTALL)),
    (MpiKind.MPICH, re.compile(r"HYDRA build details:.*?Version:\s+(\d+(?:\.\d+)*)", re.DOTALL)),
    (MpiKind.SRUN, re.compile(r"^slurm(?:-wlm)?\s+(\d+(?:\.\d+)*)", re.MULTILINE)),
)


def flavour_of(version_text: str, path: str = "mpirun") -> MpiFlavour | None:
    """Read what `mpirun --version` (or `mpiexec`, `srun`) printed; None if it is none that is known."""
    for kind, pattern in _VERSIONS:
        if match := pattern.search(version_text):
            return MpiFlavour(kind, tuple(map(int, match[1].split("."))), path)
    return None


@cache
def detect(path: str | None = None) -> MpiFlavour | None:
    """Return the first MPI start command on the search path that is known; None if there is none.

    `path` is the search path, by default the one of this process. The answer is remembered.
    """
    for command in _COMMANDS:
        found = shutil.which(command, path=path)
        if found is None:
            continue
        flavour = flavour_of(_version_text(found), found)
        if flavour is not None:
            return MpiFlavour(flavour.kind, flavour.version, found, single_copy=may_read_memory())
    return None


def _version_text(command: str) -> str:
    # Open MPI refuses to say its version to root in some releases.
    allowed: Mapping[str, str] = mpi_environment(MpiFlavour(MpiKind.OPEN_MPI, (5,)), user_id=os.geteuid())
    try:
        done = subprocess.run(
            [command, "--version"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_PATIENCE_S,
            check=False,
            env=job_environment(os.environ, allowed),
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", errors="replace")


class _Part(ctypes.Structure):
    """`struct iovec`, readv(2)."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def may_read_memory() -> bool:
    """Whether process_vm_readv(2) works here, by which MPI copies large messages once: many containers forbid it."""
    source, target = ctypes.create_string_buffer(b"x"), ctypes.create_string_buffer(1)
    local, remote = (_Part(ctypes.addressof(buffer), 1) for buffer in (target, source))
    try:
        read = ctypes.CDLL(None, use_errno=True).process_vm_readv
    except AttributeError:
        return False
    read.restype = ctypes.c_ssize_t
    return bool(read(os.getpid(), ctypes.byref(local), 1, ctypes.byref(remote), 1, 0) == 1)
