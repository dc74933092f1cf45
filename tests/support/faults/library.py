"""Build, preload and arm the library that makes system calls of one process fail."""

import ctypes
import errno
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).with_name("syscalls.c")

# In the order of the enums in syscalls.c.
KINDS = (
    *("open", "create", "write", "sync", "rename", "unlink"),
    *("truncate", "mkdir", "lock", "connect", "send", "map", "request", "reply"),
)
_ACTIONS = ("count", "crash", "tear", "fail", "shorten", "jump", "cut", "ask")

# Environment variable: the descriptors for asking to restart the server, and for the answer.
RESTARTS = "AUTOTUNE_FAULTS_RESTARTS"

WRITING = ("create", "write", "sync", "rename", "unlink", "truncate", "mkdir", "lock", "connect", "send")


@dataclass(frozen=True)
class Fault:
    """A fault at the N-th call of some kinds.

    name: How reports call it.
    action: `crash`: the process dies before the call. `tear`: it dies in the middle of a write. `fail`: the call fails
        with `error`. `shorten`: it writes half. `jump`: the wall clock jumps by `seconds`. `cut`: the connection is cut
        before the call sends or receives. `ask`: the server is killed and restarted before that.
    for_ever: Every later call fails, too.
    """

    name: str
    action: str
    kinds: tuple[str, ...] = WRITING
    error: int = 0
    for_ever: bool = False
    seconds: int = 0

    @property
    def kills(self) -> bool:
        """Whether the fault kills the process."""
        return self.action in {"crash", "tear"}

    @property
    def parts(self) -> bool:
        """Whether the process can no longer write to a storage on a server."""
        return self.kills or (self.action == "cut" and self.for_ever)


def _errors() -> Iterator[Fault]:
    new = ("create", "write", "mkdir")
    kinds: Mapping[int, tuple[str, ...]] = {
        errno.ENOSPC: (*new, "sync", "rename"),
        errno.EDQUOT: (*new, "rename"),
        # Not locks: SQLite takes a failed lock for a held one and waits a minute.
        errno.EIO: ("write", "sync", "rename", "unlink", "truncate"),
        errno.EMFILE: ("open", "create"),
        errno.ENOMEM: ("open", "create", "mkdir", "map"),
    }
    for number, where in kinds.items():
        for ever in (False, True):
            yield Fault(errno.errorcode[number] + (", for ever" if ever else ""), "fail", where, number, for_ever=ever)
    # Not for ever: no kernel interrupts the same call endlessly.
    interrupted = ("open", "create", "write", "sync", "truncate", "connect", "send")
    yield Fault("EINTR", "fail", interrupted, errno.EINTR)
    yield Fault("short write", "shorten", ("write", "send"))
    yield Fault("short write, for ever", "shorten", ("write", "send"), for_ever=True)


FAULTS: tuple[Fault, ...] = (
    Fault("crash", "crash", tuple(kind for kind in WRITING if kind != "lock")),
    Fault("crash at a lock", "crash", ("lock",)),
    Fault("crash in a write", "tear", ("write",)),
    *_errors(),
    # Before a statement, and between its effect and the answer.
    Fault("connection cut", "cut", ("request", "reply"), errno.ECONNRESET),
    Fault("connection cut, for ever", "cut", ("request", "reply"), errno.ECONNRESET, for_ever=True),
    Fault("server restarted", "ask", ("request", "reply")),
    *(
        Fault(f"clock {name}", "jump", seconds=seconds)
        for name, seconds in {"-1 day": -86400, "-3 minutes": -180, "+3 minutes": 180, "+1 hour": 3600}.items()
    ),
)


def why_not() -> str | None:
    """Return why the library cannot be built here; None if it can."""
    return None if shutil.which("gcc") else "no gcc, which builds the library that makes system calls fail"


def built(folder: Path) -> Path:
    """Build the library in a folder."""
    target = folder / "faults.so"
    subprocess.run(["gcc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", target, SOURCE, "-ldl"], check=True)
    return target


@cache
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ["LD_PRELOAD"])
    library.faults_count.restype = ctypes.c_long
    library.faults_arm.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_int, ctypes.c_int, ctypes.c_long]
    return library


def arm(fault: Fault, at: int) -> None:
    """Make the fault strike at the `at`-th call of this process from now on."""
    mask = sum(1 << KINDS.index(kind) for kind in fault.kinds)
    if RESTARTS in os.environ:
        _library().faults_ask(*map(int, os.environ[RESTARTS].split()))
    _library().faults_arm(mask, _ACTIONS.index(fault.action), at, fault.error, fault.for_ever, fault.seconds)


def disarm() -> None:
    """Stop injecting faults."""
    _library().faults_arm(0, 0, 0, 0, 0, 0)


def count() -> None:
    """Count the calls of this process from now on."""
    _library().faults_arm((1 << len(KINDS)) - 1, _ACTIONS.index("count"), 0, 0, 0, 0)


def counts() -> dict[str, int]:
    """Return the number of calls of each kind."""
    return {kind: int(_library().faults_count(number)) for number, kind in enumerate(KINDS)}


@contextmanager
def elsewhere() -> Iterator[None]:
    """Pause faults for what another process or host would do; does nothing if the library is not loaded."""
    if "LD_PRELOAD" not in os.environ:
        yield
        return
    library = _library()
    library.faults_pause(1)
    try:
        yield
    finally:
        library.faults_pause(-1)
