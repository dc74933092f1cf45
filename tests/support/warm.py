"""Run `python -m autotune` without the seconds of its imports: run as `python -m tests.support.warm FD`.

A server that has imported everything forks for each command. The fork has its own folder, environment, cores and files,
and exits as any Python does. `test_played_front_pages.py` starts commands without this server, as do tests that kill
sessions.
"""

import atexit
import gc
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from functools import cache
from importlib import import_module
from pathlib import Path

from autotune.cli.command_table import COMMANDS

_ROOT = Path(__file__).resolve().parents[2]
# Commands import what they need when they run; a session imports nearly everything.
_IMPORTED = (
    *("autotune.cli", "autotune.tuning.session", "autotune.execution.ray_executor", "rich.table"),
    *dict.fromkeys(
        f"autotune.cli.commands.{one.module}" for entry in COMMANDS for one in (entry, *entry.commands) if one.module
    ),
)
_MOST_BYTES = 2**17
# Threads do not survive a fork.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def autotune(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `autotune` with these words in a folder, and wait for its end.

    `environment` replaces the environment of the tests; `variables` are added. The screen has 200 columns unless the
    environment sets COLUMNS.
    """
    given = os.environ if environment is None else environment
    try:
        return _server().run(folder, words, {"COLUMNS": "200", **given, **variables})
    except BaseException:
        # The server may still answer this request: the next one needs a new server.
        _server().close()
        _server.cache_clear()
        raise


@cache
def _server() -> "_Server":
    return _Server()


class _Server:
    """The forking process, and a socket to it."""

    def __init__(self) -> None:
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.warm", str(there.fileno())],
                cwd=_ROOT,
                env=os.environ | _ONE_THREAD,
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def run(self, folder: Path, words: Sequence[str], environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
            cores = sorted(os.sched_getaffinity(0))
            wanted = {"folder": os.fspath(folder), "words": words, "environment": environment, "cores": cores}
            request = json.dumps(wanted).encode()
            assert len(request) < _MOST_BYTES
            socket.send_fds(self._here, [request], [file.fileno() for file in files])
            code = int(self._here.recv(_MOST_BYTES))
            for file in files:
                file.seek(0)
            stdout, stderr = (file.read().decode() for file in files)
        return subprocess.CompletedProcess(["autotune", *words], code, stdout, stderr)

    def close(self) -> None:
        atexit.unregister(self.close)
        self._here.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()


def _serve(requests: socket.socket) -> dict[str, object] | None:
    """Fork for each request. Return the request in the fork, and None in this process when there are no more."""
    while True:
        request, files, _, _ = socket.recv_fds(requests, _MOST_BYTES, 2)
        if not request:
            return None
        child = os.fork()
        if child == 0:
            requests.close()
            for target, file in enumerate(files, 1):
                os.dup2(file, target)
                os.close(file)
            return json.loads(request)
        for file in files:
            os.close(file)
        _, status = os.waitpid(child, 0)
        requests.send(str(os.waitstatus_to_exitcode(status)).encode())


def main() -> None:
    """Serve until the tests end; in a fork, run as `python -m autotune`."""
    before = set(os.environ)
    for name in _IMPORTED:
        import_module(name)
    # Frozen objects are never collected, so forks do not copy their pages.
    gc.collect()
    gc.freeze()
    added = {name: value for name, value in os.environ.items() if name not in before}
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        return
    os.sched_setaffinity(0, request["cores"])
    os.chdir(str(request["folder"]))
    os.environ.clear()
    os.environ.update(added | request["environment"])
    sys.argv = ["autotune", *request["words"]]
    runpy.run_module("autotune", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
