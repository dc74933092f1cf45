"""A Python process that has imported what commands need, and forks for each of them. Needs only the standard library.

The fork has its own folder, environment, cores and files, and exits as any Python does.
"""

import atexit
import gc
import json
import os
import signal
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_MOST_BYTES = 2**17
# Threads do not survive a fork.
_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


class ForkServer:
    """The forking process, and a socket to it."""

    def __init__(self, command: Sequence[str], **variables: str) -> None:
        """Start a command that calls `serve`; its last word becomes the number of its socket."""
        self._here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with there:
            self._process = subprocess.Popen(
                [*command, str(there.fileno())],
                cwd=ROOT,
                env=os.environ | _ONE_THREAD | variables,
                stdin=subprocess.DEVNULL,
                pass_fds=[there.fileno()],
                start_new_session=True,
            )
        atexit.register(self.close)

    def run(self, folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        """Let a fork run; return its exit code, standard output and standard error."""
        with ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile()) for _ in range(2)]
            cores = sorted(os.sched_getaffinity(0))
            wanted = {"folder": os.fspath(folder), "words": words, "environment": dict(environment), "cores": cores}
            request = json.dumps(wanted).encode()
            assert len(request) < _MOST_BYTES
            try:
                socket.send_fds(self._here, [request], [file.fileno() for file in files])
                code = int(self._here.recv(_MOST_BYTES))
            except BaseException:
                self.close()  # the server may still answer this request: the next one needs a new server
                raise
            for file in files:
                file.seek(0)
            stdout, stderr = (file.read().decode() for file in files)
        return code, stdout, stderr

    @property
    def is_closed(self) -> bool:
        return self._here.fileno() < 0

    def close(self) -> None:
        atexit.unregister(self.close)
        self._here.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()


def serve(number: int, before: set[str]) -> list[str] | None:
    """Fork for each request; return its words in the fork, and None in this process when there are no more.

    Args:
        number: The file descriptor of the socket.
        before: The names of the environment's variables before the imports: a fork gets those that these have added.
    """
    # Frozen objects are never collected, so forks do not copy their pages.
    gc.collect()
    gc.freeze()
    added = {name: value for name, value in os.environ.items() if name not in before}
    request = _fork_for_requests(socket.socket(fileno=number))
    if request is None:
        return None
    os.sched_setaffinity(0, request["cores"])
    os.chdir(request["folder"])
    os.environ.clear()
    os.environ.update(added | request["environment"])
    tempfile.tempdir = None
    return request["words"]


def _fork_for_requests(requests: socket.socket) -> dict | None:
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
