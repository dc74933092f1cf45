"""Processes that keep cores busy at the same time, one on each core, and report their rates."""

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

# One rank a core is what is measured: a library's own threads would be on the same core.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "GOTO_NUM_THREADS"), "1"
)


class WorkerError(RuntimeError):
    """A measuring process did not work: it was killed, or had too little memory or time."""


class Workers:
    """One process on each of `cpus`, used as a context: it ends them all.

    All measurements together may take `patience_s`; after that the processes are killed.

    Raises:
        WorkerError: they cannot be started.
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
        """Prepare the `first` processes for a task of `worker`; the others drop their arrays.

        Raises:
            WorkerError: a process is gone, or has too little memory.
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
            WorkerError: a process is gone.
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
            msg = f"a measuring process is gone: {error.strerror}"
            raise WorkerError(msg) from error
        if not all(lines):
            msg = "a measuring process was ended: for want of memory, or because it took too long"
            raise WorkerError(msg)
        return [json.loads(line) for line in lines]

    def _stop(self) -> None:
        """Kill all processes: a reader that waits for an answer meets the end of the output."""
        for process in self._processes:
            process.kill()

    def _end(self) -> None:
        self._stop()
        for process in self._processes:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                # Requests that were not yet written are lost.
                with suppress(OSError):
                    _pipe(pipe).close()


def _start_worker(cpu: int, environment: Mapping[str, str]) -> subprocess.Popen[str]:
    # -P: the modules beside the program must not take the place of the library's.
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
