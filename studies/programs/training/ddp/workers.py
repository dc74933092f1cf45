"""The workers' processes, as the leading one sees them."""

import multiprocessing
import tempfile
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from processes import ending, stay_on_this_machine
from protocol import StopRequest

from .failure import ERROR, Failure
from .messages import Shared
from .options import Settings
from .worker import work

_LOOK_S = 0.1  # how often to look whether somebody asked to stop
_CAUSE_S = 1.0  # that long after an error, a worker's death is its cause


class WorkerError(Exception):
    """A worker could not go on."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class Workers:
    """All workers; whoever makes this must `end` it."""

    def __init__(self, settings: Settings, shared: Shared, stop: StopRequest) -> None:
        stay_on_this_machine()
        self._patience_s, self._shared, self._stop = settings.patience_s, shared, stop
        self._folder = tempfile.TemporaryDirectory(prefix="ddp-")  # where the workers meet
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        context = multiprocessing.get_context("spawn")
        for rank in range(settings.workers):
            ours, theirs = context.Pipe()
            arguments = (rank, settings, shared, theirs, Path(self._folder.name))
            # Not a daemon in Python's sense, which could not have loader processes.
            process = context.Process(target=work, args=arguments, name=f"ddp worker {rank}")
            process.start()
            theirs.close()
            self._connections.append(ours)
            self._processes.append(process)

    def collect(self, *, leave_when_asked: bool = False) -> list[Any]:
        """Return one message of each worker; none when somebody asked to stop, and nothing would be lost by that.

        Raises:
            WorkerError: a worker failed or has ended, or none gave a sign of life for too long.
        """
        found: dict[int, Any] = {}
        heard_s, counts = time.monotonic(), self._shared.pulse.counts()
        while len(found) < len(self._connections):
            waiting = [connection for rank, connection in enumerate(self._connections) if rank not in found]
            ready = wait([*waiting, *(process.sentinel for process in self._processes)], _LOOK_S)
            self._raise_of_the_dead()
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
        """Send all workers a message.

        Raises:
            WorkerError: a worker has ended.
        """
        for rank, connection in enumerate(self._connections):
            try:
                connection.send(message)
            except OSError:
                self._processes[rank].join(_CAUSE_S)
                self._raise_of_the_dead()
                raise _error(f"worker {rank} cannot be reached") from None

    def end(self) -> None:
        """Kill what is still running."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.join()
        self._folder.cleanup()

    def _received(self, connection: Connection) -> object:
        try:
            message = connection.recv()
        except EOFError:  # the process is about to end
            self._raise_of_the_ending()
            raise _error("a worker has closed its connection") from None
        if isinstance(message, Failure):
            if message.exit_code == ERROR:
                self._raise_of_the_ending()
            raise WorkerError(message)
        return message

    def _raise_of_the_ending(self) -> None:
        ended = wait([process.sentinel for process in self._processes], _CAUSE_S)
        for process in self._processes:
            if process.sentinel in ended:
                process.join(_CAUSE_S)  # it closes what is waited for before how it ended can be asked
        self._raise_of_the_dead()

    def _raise_of_the_dead(self) -> None:
        for rank, process in enumerate(self._processes):
            if process.exitcode is not None:
                raise _error(f"worker {rank} (process {process.pid}) has {ending(process.exitcode)}")


def _error(message: str) -> WorkerError:
    return WorkerError(Failure(ERROR, message))
