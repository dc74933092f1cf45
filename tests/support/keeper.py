"""Start programs that end with the tests: run as `python -m tests.support.keeper FOLDER`.

A line of JSON on standard input asks for a program (argv, environment, output file); the answer on standard output is
its process id. The keeper is a subreaper: it adopts the orphans of its programs. When its input or its parent ends, it
ends all its descendants and removes the folder.
"""

import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from launchers.process_tree import descendants

_LOOK_S = 0.1
_GRACE_S = 5.0
# A process that waits for a dead file system ignores SIGKILL.
_PATIENCE_S = 30.0
_PR_SET_CHILD_SUBREAPER = 36  # <linux/prctl.h>

_ROOT = Path(__file__).resolve().parents[2]


def started(folder: Path) -> subprocess.Popen[bytes]:
    """Start a keeper that removes the folder at its end."""
    argv = [sys.executable, "-m", "tests.support.keeper", str(folder)]
    return subprocess.Popen(argv, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)


def ask(keeper: subprocess.Popen[bytes], argv: Sequence[str], environment: Mapping[str, str], log: Path) -> int:
    """Let a keeper start a program, and return its process id."""
    assert keeper.stdin is not None
    assert keeper.stdout is not None
    keeper.stdin.write(json.dumps([list(argv), dict(environment), str(log)]).encode() + b"\n")
    keeper.stdin.flush()
    return int(keeper.stdout.readline())


def keep(folder: Path) -> None:
    """Start the requested programs until standard input or the parent ends; then end them all."""
    parent = os.getppid()
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    assert ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
    # The end of the pipe is not enough: a process forked by the tests may hold its other end.
    while os.getppid() == parent:
        _reap()
        if select.select([0], [], [], _LOOK_S)[0]:
            line = sys.stdin.buffer.readline()
            if not line:
                break
            os.write(1, b"%d\n" % _spawn(*json.loads(line)))
    for number, patience_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, _PATIENCE_S)):
        _end_descendants(number, patience_s)
    shutil.rmtree(folder, ignore_errors=True)


def _spawn(argv: list[str], environment: dict[str, str], log: str) -> int:
    files = [
        (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
        (os.POSIX_SPAWN_DUP2, 1, 2),
    ]
    ignored = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
    return os.posix_spawn(argv[0], argv, environment, file_actions=files, setsid=True, setsigdef=ignored)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _end_descendants(number: signal.Signals, patience_s: float) -> None:
    give_up_at = time.monotonic() + patience_s
    asked: set[int] = set()
    while (left := descendants(os.getpid())) and time.monotonic() < give_up_at:
        for pid in left:
            if number is signal.SIGKILL or pid not in asked:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
        asked.update(left)
        time.sleep(0.02)
        _reap()


if __name__ == "__main__":
    keep(Path(sys.argv[1]))
