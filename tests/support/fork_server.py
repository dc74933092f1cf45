"""A Python process that has imported what commands need, and forks for each of them. Needs only the standard library.

The fork has its own folder, environment, cores and files, and exits as any Python does.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

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

    def start(
        self, folder: Path, words: Sequence[str], environment: Mapping[str, str], stdout: IO[bytes], stderr: IO[bytes]
    ) -> "Fork":
        """Start a fork with these words, which writes to these files."""
        cores = sorted(os.sched_getaffinity(0))
        wanted = {"folder": os.fspath(folder), "words": words, "environment": dict(environment), "cores": cores}
        request = json.dumps(wanted).encode()
        assert len(request) < _MOST_BYTES
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            socket.send_fds(self._here, [request], [one.fileno() for one in (stdout, stderr, theirs)])
        return Fork(ours)

    def run(self, folder: Path, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, str, str]:
        """Let a fork run to its end; return its exit code, standard output and standard error."""
        with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
            fork = self.start(folder, words, environment, stdout, stderr)
            try:
                code = fork.wait()
            finally:
                fork.kill()
            for file in (stdout, stderr):
                file.seek(0)
            return code, stdout.read().decode(), stderr.read().decode()

    def close(self) -> None:
        atexit.unregister(self.close)
        self._here.close()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait()


class Fork:
    """A started fork: the part of `subprocess.Popen` that tests use."""

    def __init__(self, status: socket.socket) -> None:
        """Read the process id of a fork, and later its exit code, from a socket."""
        self._status = status
        self.pid = int(status.recv(_MOST_BYTES))
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, or None if the fork has not ended."""
        return self._read(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code.

        Raises:
            subprocess.TimeoutExpired: The fork has not ended after this time in seconds.
        """
        code = self._read(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(f"fork {self.pid}", timeout or 0.0)
        return code

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the fork has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, unless the fork has ended."""
        self.send_signal(signal.SIGKILL)

    def _has_ended(self, timeout_s: float | None) -> bool:
        # Not `select`, which refuses file descriptors above 1,023.
        ended = select.poll()
        ended.register(self._status, select.POLLIN)
        return bool(ended.poll(None if timeout_s is None else 1000 * timeout_s))

    def _read(self, timeout_s: float | None) -> int | None:
        if self.returncode is None and self._has_ended(timeout_s):
            with self._status:
                self.returncode = int(self._status.recv(_MOST_BYTES))
        return self.returncode


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


def run_as_python(words: Sequence[str]) -> None:
    """Do what `python -m MODULE ...` or `python -c PROGRAM ...` does."""
    kind, program, *rest = words
    if kind == "-m":
        sys.argv = [program, *rest]
        runpy.run_module(program, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [kind, *rest]
        exec(compile(program, "<string>", "exec"), {"__name__": "__main__"})


def _fork_for_requests(requests: socket.socket) -> dict[str, Any] | None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that nobody has to wait for the forks that watch
    while True:
        request, files, _, _ = socket.recv_fds(requests, _MOST_BYTES, 3)
        if not request:
            return None
        if os.fork() == 0:
            requests.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            *outputs, status = files
            if _is_worker(socket.socket(fileno=status)):
                for target, file in enumerate(outputs, 1):
                    os.dup2(file, target)
                    os.close(file)
                return json.loads(request)
        for file in files:
            os.close(file)


def _is_worker(status: socket.socket) -> bool:
    """Fork once more: the new process works, and this one reports its id and its exit code and ends."""
    with status:
        worker = os.fork()
        if worker == 0:
            return True
        with suppress(BrokenPipeError):  # the tests have ended
            status.send(str(worker).encode())
            _, ended = os.waitpid(worker, 0)
            status.send(str(os.waitstatus_to_exitcode(ended)).encode())
    os._exit(0)
