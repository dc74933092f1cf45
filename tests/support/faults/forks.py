"""Fork this process, which has imported everything, to do one thing in a folder and exit as Python does."""

import atexit
import ctypes
import gc
import importlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BROKEN = 70
"""The exit code of a fork that ended with a traceback."""

# A session takes a second. On a busy machine it may take much longer without hanging.
_PATIENCE_S = 900.0

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_sleep, monotonic = time.sleep, time.monotonic


def adopt_orphans() -> None:
    """Make this process the parent of the orphans that its forks leave."""
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def forked(folder: Path, log: Path, work: Callable[[], int], patience_s: float = _PATIENCE_S) -> int | None:
    """Do `work` in a fork, in a folder; return the exit code, or None if the fork was killed for taking too long."""
    return ended(begun(folder, log, work), patience_s)


def begun(folder: Path, log: Path, work: Callable[[], int]) -> int:
    """Start `work` in a fork, in a folder; return the process id."""
    pid = os.fork()
    if pid == 0:
        _be(folder, log, work)
    return pid


def ended(pid: int, patience_s: float) -> int | None:
    """Wait for a fork to end; return its exit code, or None if it was killed for taking too long."""
    give_up_at = monotonic() + patience_s
    pause_s = 0.002
    while True:
        gone, status = os.waitpid(pid, os.WNOHANG)
        if gone:
            return os.waitstatus_to_exitcode(status)
        if monotonic() >= give_up_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        _sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.05)


def imported() -> str:
    """Return the names of all imported modules, for `import_all`."""
    return "\n".join(name for name in sys.modules if not name.startswith("_"))


def import_all(names: str) -> None:
    """Import what a fork imported, so that later forks need not."""
    for name in names.splitlines():
        if name not in sys.modules and name != "__main__":
            importlib.import_module(name)
    gc.collect()
    gc.freeze()
    # No fork lives long enough to need garbage collection.
    gc.disable()


def orphans(patience_s: float = 60.0) -> int:
    """Wait for orphans of forks to end, kill the others, and return how many were killed."""
    count, give_up_at = 0, monotonic() + patience_s
    with suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0 and monotonic() < give_up_at:
                _sleep(0.01)
            elif pid == 0:
                children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
                for child in children:
                    os.kill(int(child), signal.SIGKILL)
                    os.waitpid(int(child), 0)
                    count += 1
    return count


def _be(folder: Path, log: Path, work: Callable[[], int]) -> None:
    code = BROKEN
    try:
        os.setsid()
        os.chdir(folder)
        os.environ["TMPDIR"] = str(folder / "tmp")
        with log.open("ab", 0) as file, Path(os.devnull).open("rb") as nothing:
            os.dup2(nothing.fileno(), 0)
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
        code = work()
        threading._shutdown()
        atexit._run_exitfuncs()
    except BaseException:  # noqa: BLE001  a fork must never continue as its parent
        traceback.print_exc()
        code = BROKEN
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
