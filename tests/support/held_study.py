"""A process that holds the study `mine`, as a session does."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_HOLD = """
import sys
from autotune.storage.study_lock import StudyLock
lock = StudyLock.acquire(sys.argv[1], "mine")
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def held_study(url: str) -> Iterator["subprocess.Popen[str]"]:
    """Provide a process that holds the study until its standard input is closed."""
    command = [sys.executable, "-c", _HOLD, url]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder
