"""Find the processes of a session by role: coordinator, supervisor, and so on."""

import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from launchers.process_tree import descendants
from tests.support import postgres
from tests.support.faults import server_database
from tests.support.kills import slurm

_START_COMMANDS = (b"mpirun", b"orterun", b"mpiexec", b"prterun")
_BACKEND = f"postgres: {postgres.USER} {server_database.NAME} ".encode()
# Environment variable: the id of the server's first process.
SERVER_PROCESS = "KILLS_SERVER_PROCESS"
_LOOK_S = 0.01
# Roles that get SIGTERM, as the system stops its services.
_ASKED = {f"{slurm.CONTROLLER}, asked": signal.SIGTERM}

Words = list[bytes]
"""The command line of a process."""


def _runs(*endings: str) -> Callable[[Words], bool]:
    return lambda words: any(word.endswith(ending.encode()) for word in words for ending in endings)


ROLES: Mapping[str, Callable[[Words], bool]] = {
    "supervisor": _runs("launchers/supervisor.py", "launchers/node.py"),
    "service": lambda words: b"serve" in words,
    "shim": _runs("supervision/shim.py"),
    "study": lambda words: b"study" in words and b"--status" in words,
    "answer": lambda words: b"answer-of-sbatch" in words,
    "driver": _runs("launchers/server.py"),
    "server": _runs("/tiny_server.py"),
    "load": lambda words: _runs("/work.py")(words) and not _runs("launchers/server.py")(words),
    "start command": lambda words: Path(os.fsdecode(words[0])).name.encode() in _START_COMMANDS,
}


def victim(role: str, coordinator: int) -> int | None:
    """Return the process with this role in the session of a coordinator; None if no process has it."""
    if role == "coordinator":
        return coordinator
    if role.startswith(slurm.CONTROLLER):
        return slurm.controller()
    if role == "backend":
        return _backend()
    found = [pid for pid in descendants(os.getpid()) if _plays(role, pid)]
    # A local job's supervisor has a parent of the same program, which waits for its end.
    return next(reversed(found) if role == "supervisor" else iter(found), None)


def strike(roles: list[str], find: Callable[[str], int | None], until: Callable[[], bool]) -> list[int]:
    """Kill the processes of these roles at once, as soon as all exist; give up when `until` is true."""
    while not until():
        pids = [pid for pid in map(find, roles) if pid is not None]
        if len(pids) == len(roles):
            struck = []
            for role, pid in zip(roles, pids, strict=True):
                with suppress(ProcessLookupError):
                    os.kill(pid, _ASKED.get(role, signal.SIGKILL))
                    struck.append(pid)
            return struck
        time.sleep(_LOOK_S)
    return []


def _backend() -> int | None:
    """Return the server process of a session's connection; None without a connection."""
    server = int(os.environ[SERVER_PROCESS])
    for pid in descendants(server):
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().startswith(_BACKEND):
                return pid
    return None


def _plays(role: str, pid: int) -> bool:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return bool(words[0]) and ROLES[role](words)
