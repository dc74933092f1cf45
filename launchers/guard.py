"""Ends what a process started when that process is gone: run as `python -P -m launchers.guard TOKEN PID`.

The guarded process holds the other end of standard input, so end-of-file means that it is gone, however it ended. The
guard finds what it started in two ways: by a mark in the environment, and by watching its descendants while it lives,
since some programs overwrite their environment to show a title. Jobs are spared: their supervisors end them and record
why.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Mapping

from launchers.process_tree import descendants, start_time
from launchers.processes import JOB_VARIABLE, SESSION_VARIABLE, find_marked, read_mark, signal_all

_POLL_S = 0.5
_PATIENCE_S = 10.0


def main() -> int:
    """Wait until the guarded process is gone, then kill what it left."""
    token, guarded = sys.argv[1], int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    born = start_time(guarded)
    seen: dict[int, int] = {}
    while born is not None and start_time(guarded) == born:
        seen = _living({pid: start_time(pid) for pid in descendants(guarded)} | seen)
        if select.select([0], [], [], _POLL_S)[0] and not os.read(0, 4096):
            break
    _end(token, seen)
    return 0


def _living(seen: Mapping[int, int | None]) -> dict[int, int]:
    return {pid: began for pid, began in seen.items() if began is not None and start_time(pid) == began}


def _end(token: str, seen: dict[int, int]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while left := _remaining(token, seen):
        signal_all(left, signal.SIGKILL)
        if time.monotonic() >= give_up_at:
            return
        time.sleep(0.005)


def _remaining(token: str, seen: dict[int, int]) -> list[int]:
    """Return the processes that are left, including those that they have started meanwhile."""
    known = [*_living(seen), *find_marked(SESSION_VARIABLE, lambda mark: mark == token)]
    below = [child for pid in known for child in descendants(pid)]
    return [
        pid
        for pid in dict.fromkeys([*known, *below])
        if pid != os.getpid() and start_time(pid) is not None and read_mark(pid, JOB_VARIABLE) is None
    ]


if __name__ == "__main__":
    sys.exit(main())
