"""The library that makes system calls fail: built once, loaded before the C library, and armed for one process."""

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

# As in the source, in its order.
KINDS = (
    *("open", "create", "write", "sync", "rename", "unlink"),
    *("truncate", "mkdir", "lock", "connect", "send", "map", "request", "reply"),
)
_ACTIONS = ("count", "crash", "tear", "fail", "shorten", "jump", "cut", "ask")

# Of the environment: where to ask for a restart of the server, and where the answer comes, as descriptors.
RESTARTS = "AUTOTUNE_FAULTS_RESTARTS"

WRITING = ("create", "write", "sync", "rename", "unlink", "truncate", "mkdir", "lock", "connect", "send")


@dataclass(frozen=True)
class Fault:
    """What becomes of the N-th call of some `kinds`, of which it is called by `name`.

    `action` is one of: the process dies before the call (crash) or in the middle of a write (tear); the call fails with
    an `error`, or writes half (shorten); the wall clock jumps by `seconds`; the connection is cut before something is
    sent or received there (cut), or its server is killed and started again before that (ask). `for_ever` goes on with
    every later call.
    """

    name: str
    action: str
    kinds: tuple[str, ...] = WRITING
    error: int = 0
    for_ever: bool = False
    seconds: int = 0

    @property
    def kills(self) -> bool:
        """Whether the process dies of it."""
        return self.action in {"crash", "tear"}

    @property
    def parts(self) -> bool:
        """Whether the process can write nothing more to a storage of a server's."""
        return self.kills or (self.action == "cut" and self.for_ever)


def _errors() -> Iterator[Fault]:
    new = ("create", "write", "mkdir")
    kinds: Mapping[int, tuple[str, ...]] = {
        errno.ENOSPC: (*new, "sync", "rename"),
        errno.EDQUOT: (*new, "rename"),
        # Not a lock: SQLite takes that for one that is held, and waits a minute for it.
        errno.EIO: ("write", "sync", "rename", "unlink", "truncate"),
        errno.EMFILE: ("open", "create"),
        errno.ENOMEM: ("open", "create", "mkdir", "map"),
    }
    for number, where in kinds.items():
        for ever in (False, True):
            yield Fault(errno.errorcode[number] + (", for ever" if ever else ""), "fail", where, number, for_ever=ever)
    # A call that never does anything but be interrupted is none that a kernel has.
    interrupted = ("open", "create", "write", "sync", "truncate", "connect", "send")
    yield Fault("EINTR", "fail", interrupted, errno.EINTR)
    yield Fault("short write", "shorten", ("write", "send"))
    yield Fault("short write, for ever", "shorten", ("write", "send"), for_ever=True)


FAULTS: tuple[Fault, ...] = (
    Fault("crash", "crash", tuple(kind for kind in WRITING if kind != "lock")),
    Fault("crash at a lock", "crash", ("lock",)),
    Fault("crash in a write", "tear", ("write",)),
    *_errors(),
    # Before a statement, and between what it did and the answer.
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
    """Let the fault strike this process at its `at`-th call from now on."""
    mask = sum(1 << KINDS.index(kind) for kind in fault.kinds)
    if RESTARTS in os.environ:
        _library().faults_ask(*map(int, os.environ[RESTARTS].split()))
    _library().faults_arm(mask, _ACTIONS.index(fault.action), at, fault.error, fault.for_ever, fault.seconds)


def disarm() -> None:
    """Let no further call fail."""
    _library().faults_arm(0, 0, 0, 0, 0, 0)


def count() -> None:
    """Count this process's calls from now on."""
    _library().faults_arm((1 << len(KINDS)) - 1, _ACTIONS.index("count"), 0, 0, 0, 0)


def counts() -> dict[str, int]:
    """Return how many calls of each kind there were."""
    return {kind: int(_library().faults_count(number)) for number, kind in enumerate(KINDS)}


@contextmanager
def elsewhere() -> Iterator[None]:
    """Do what another process or another host would do: no call of it fails; without the library none does."""
    if "LD_PRELOAD" not in os.environ:
        yield
        return
    library = _library()
    library.faults_pause(1)
    try:
        yield
    finally:
        library.faults_pause(-1)
