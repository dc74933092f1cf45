"""Processes that keep several cores busy at the same time, one on each core, and report their rates."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from threading import Timer
from types import TracebackType
from typing import IO, Any, Self

from autotune.machines import worker

# Each process is pinned to one core: threads of a library would only compete for that core.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "GOTO_NUM_THREADS"), "1"
)


class WorkerError(RuntimeError):
    """A measuring process failed: it was killed, or it had too little memory or time."""


class Workers:
    """Processes, one on each of some hardware threads; a context manager that ends them all.

    Args:
        cpus: The hardware threads.
        patience_s: The time for all measurements together; then the processes are killed.
        environment: The environment of the processes.

    Raises:
        WorkerError: the processes cannot be started.
    """

    def __init__(self, cpus: Sequence[int], *, patience_s: float, environment: Mapping[str, str] = os.environ) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._timer = Timer(patience_s, self._stop)
        self._timer.daemon = True
        try:
            for cpu in cpus:
                self._processes.append(_start_worker(cpu, {**environment, **_ONE_THREAD}))
            self._timer.start()
        except OSError as error:
            self._end()
            msg = f"no more processes can be started: {error.strerror}"
            raise WorkerError(msg) from error
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._timer.cancel()
        self._end()

    def prepare(self, first: int, task: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Prepare the `first` processes for a task of `worker`; make the others free their arrays.

        Raises:
            WorkerError: a process has exited, or has too little memory.
        """
        idle = {"prepare": "copy", "bytes": 8}
        answers = self._answers([task] * first + [idle] * (len(self._processes) - first))[:first]
        if any("error" in answer for answer in answers):
            msg = "there is not enough memory"
            raise WorkerError(msg)
        return answers

    def rate(self, first: int, duration_s: float) -> float:
        """Let the `first` processes work at the same time, and return the sum of their rates.

        Raises:
            WorkerError: a process has exited.
        """
        return float(sum(answer["rate"] for answer in self._answers([{"run_s": duration_s}] * first)))

    def _answers(self, questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        exchanges = list(zip(self._processes, questions, strict=False))
        try:
            for process, question in exchanges:
                pipe = _pipe(process.stdin)
                pipe.write(json.dumps(question) + "\n")
                pipe.flush()
            lines = [_pipe(process.stdout).readline() for process, _ in exchanges]
        except OSError as error:
            msg = f"a measuring process has exited: {error.strerror}"
            raise WorkerError(msg) from error
        if not all(lines):
            msg = "a measuring process was killed: it lacked memory or took too long"
            raise WorkerError(msg)
        return [json.loads(line) for line in lines]

    def _stop(self) -> None:
        """Kill all processes; a thread that waits for an answer then reads the end of the output."""
        for process in self._processes:
            process.kill()

    def _end(self) -> None:
        self._stop()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # Closing fails if requests are still unwritten; they are not needed any more.
                with suppress(OSError):
                    _pipe(pipe).close()


def _start_worker(cpu: int, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    # -P: modules beside the program must not hide those of the standard library.
    return subprocess.Popen(
        [sys.executable, "-P", worker.__file__, str(cpu)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=dict(environment),
    )


def _pipe(pipe: IO[str] | None) -> IO[str]:
    if pipe is None:
        msg = "the process was started without pipes"
        raise WorkerError(msg)
    return pipe
