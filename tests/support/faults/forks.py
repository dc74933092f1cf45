"""Forks of this process, which has imported everything: each does one thing in a folder and ends as Python does."""

import atexit
import ctypes
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

_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_sleep, monotonic = time.sleep, time.monotonic


def adopt_orphans() -> None:
    """Let what forks leave behind become this process's own children."""
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0


def forked(folder: Path, log: Path, work: Callable[[], int], patience_s: float = 60.0) -> int | None:
    """Do `work` in a fork, in a folder; return its exit code, or None if it had to be killed."""
    pid = os.fork()
    if pid == 0:
        _be(folder, log, work)
    give_up_at = monotonic() + patience_s
    pause_s = 0.002
    while True:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return os.waitstatus_to_exitcode(status)
        if monotonic() >= give_up_at:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return None
        _sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.05)


def orphans() -> int:
    """Kill what forks have left behind; return how many processes those were."""
    count = 0
    with suppress(ChildProcessError):
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
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
    except BaseException:  # noqa: BLE001  whatever it is, no fork goes on in its parent's place
        traceback.print_exc()
        code = BROKEN
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)
