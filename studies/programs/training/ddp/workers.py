"""The workers' processes, from the side of the leading one."""

import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from processes import describe_exit, stay_on_this_machine
from protocol import StopRequest

from .failure import ERROR, Failure
from .messages import Shared
from .options import Settings
from .worker import work

_LOOK_S = 0.1  # interval between checks for a request to stop
_CAUSE_S = 1.0  # a worker that dies within this time of an error is its cause


class WorkerError(Exception):
    """A worker failed."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Workers:
    """All workers; the caller must `end` them."""

    def __init__(self, settings: Settings, shared: Shared, stop: StopRequest) -> None:
        stay_on_this_machine()
        self._patience_s, self._shared, self._stop = settings.patience_s, shared, stop
        self._folder = tempfile.TemporaryDirectory(prefix="ddp-")  # for the file through which workers connect
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        for rank in range(settings.workers):
            ours, theirs = context.Pipe()
            arguments = (rank, settings, shared, theirs, Path(self._folder.name))
            # Not a daemon: Python lets daemons have no loader processes.
            process = context.Process(target=work, args=arguments, name=f"ddp worker {rank}")
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def collect(self, *, leave_when_asked: bool = False) -> list[Any]:
        """Return one message of each worker, or nothing after a request to stop, if `leave_when_asked`.

        Raises:
            WorkerError: a worker failed or ended, or all were silent for too long.
        """
        found: dict[int, Any] = {}
        heard_s, counts = time.monotonic(), self._shared.pulse.counts()
        while len(found) < len(self._connections):
            waiting = [connection for rank, connection in enumerate(self._connections) if rank not in found]
            ready = wait([*waiting, *(process.sentinel for process in self._processes)], _LOOK_S)
            self._raise_for_dead_workers()
            for rank, connection in enumerate(self._connections):
                if connection in ready:
                    found[rank] = self._received(connection)
                    heard_s = time.monotonic()
            if self._shared.pulse.counts() != counts:
                heard_s, counts = time.monotonic(), self._shared.pulse.counts()
            if self._stop.asked:
                self._shared.brake.ask()
                if leave_when_asked:
                    return []
            if time.monotonic() - heard_s > self._patience_s:
                silent = ", ".join(str(rank) for rank in range(len(self._connections)) if rank not in found)
                raise _error(f"gave up: no sign of life from worker {silent} for {self._patience_s:g} s")
        return [found[rank] for rank in range(len(self._connections))]

    def tell(self, message: object) -> None:
        """Send a message to all workers.

        Raises:
            WorkerError: a worker has ended.
        """
        for rank, connection in enumerate(self._connections):
            try:
                connection.send(message)
            except OSError:
                self._processes[rank].join(_CAUSE_S)
                self._raise_for_dead_workers()
                raise _error(f"worker {rank} cannot be reached") from None

    def end(self) -> None:
        """Kill the workers that still run."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        self._folder.cleanup()

    def _received(self, connection: Connection) -> object:
        try:
            message = connection.recv()
        except EOFError:  # the process is about to end
            self._raise_for_ending_worker()
            raise _error("a worker has closed its connection") from None
        if isinstance(message, Failure):
            if message.exit_code == ERROR:
                self._raise_for_ending_worker()
            raise WorkerError(message)
        return message

    def _raise_for_ending_worker(self) -> None:
        ended = wait([process.sentinel for process in self._processes], _CAUSE_S)
        for process in self._processes:
            if process.sentinel in ended:
                process.join(_CAUSE_S)  # its sentinel closes before its exit code is known
        self._raise_for_dead_workers()

    def _raise_for_dead_workers(self) -> None:
        for rank, process in enumerate(self._processes):
            if process.exitcode is not None:
                raise _error(f"worker {rank} (process {process.pid}) has {describe_exit(process.exitcode)}")


def _error(message: str) -> WorkerError:
    return WorkerError(Failure(ERROR, message))
