"""Ends what a process started when that process is gone: run as `python -P -m launchers.guard TOKEN PID`.

Standard input is a pipe that the guarded process holds; its end means that the process is gone, however it ended. Two
things tell what it started: a mark in their environment, and the processes seen below it while it lived (some write
over their environment to show a title). Jobs are spared: their own supervisors end them, and know more.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Mapping

from launchers.process_tree import descendants, start_time
from launchers.processes import JOB_VARIABLE, SESSION_VARIABLE, find_marked, read_mark, signal_all

_LOOK_S = 0.5
_PATIENCE_S = 10.0


def main() -> int:
    """Wait for the end of the guarded process, then end what it left."""
    token, guarded = sys.argv[1], int(sys.argv[2])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    born = start_time(guarded)
    seen: dict[int, int] = {}
    while born is not None and start_time(guarded) == born:
        seen = _living({pid: start_time(pid) for pid in descendants(guarded)} | seen)
        if select.select([0], [], [], _LOOK_S)[0] and not os.read(0, 4096):
            break
    _end(token, seen)
    return 0


def _living(seen: Mapping[int, int | None]) -> dict[int, int]:
    return {pid: began for pid, began in seen.items() if began is not None and start_time(pid) == began}


def _end(token: str, seen: dict[int, int]) -> None:
    give_up_at = time.monotonic() + _PATIENCE_S
    while left := _left(token, seen):
        signal_all(left, signal.SIGKILL)
        if time.monotonic() >= give_up_at:
            return
        time.sleep(0.005)


def _left(token: str, seen: dict[int, int]) -> list[int]:
    """Return what is left, and whatever that has started meanwhile."""
    known = [*_living(seen), *find_marked(SESSION_VARIABLE, lambda mark: mark == token)]
    below = [child for pid in known for child in descendants(pid)]
    return [
        pid
        for pid in dict.fromkeys([*known, *below])
        if pid != os.getpid() and start_time(pid) is not None and read_mark(pid, JOB_VARIABLE) is None
    ]


if __name__ == "__main__":
    sys.exit(main())
