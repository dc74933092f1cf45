"""Slurm on paper: sbatch, squeue and scancel inside one process, and jobs that only take time.

For measuring how many jobs a coordinator can keep going: everything around the jobs is real (their folders, scripts
and status files, the text of the commands and of their answers), only that nothing runs in them.
"""

import heapq
import json
import re
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

from launchers import STDOUT
from launchers.batch.commands import Answer
from launchers.supervisor import STATUS_FILE

_STATUS = {"state": "ended", "reason": "exited", "exit_code": 0, "message": "", "cpu_s": 0.0, "peak_memory_bytes": 0}
_KEPT_S = 300.0
_TICK_S = 0.02


class PaperSlurm:
    """A cluster of `slots` places. `duration_s` says how long the job of a folder takes, `prints` what it says.

    Its jobs start and end by a thread of its own, whose time is not the coordinator's.
    """

    def __init__(
        self, slots: int, duration_s: Callable[[Path], float], prints: Callable[[Path, float], str] = lambda *_: ""
    ) -> None:
        """Start with an empty queue."""
        self._slots = slots
        self._duration_s = duration_s
        self._prints = prints
        self._lock = threading.Lock()
        self._queue: deque[int] = deque()
        self._running: list[tuple[float, int, float]] = []
        self._folders: dict[int, Path] = {}
        self._states: dict[int, str] = {}
        self._ended: deque[tuple[float, int]] = deque()
        self._number = 0
        self.busy_s = 0.0
        self.polls = 0
        self.most_running = 0
        self.cpu_s = 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __call__(
        self,
        argv: Sequence[str],
        folder: Path | None = None,
        answer_file: Path | None = None,
        input_file: Path | None = None,
    ) -> Answer:
        """Answer like Slurm's command; one that is not known is refused."""
        del input_file
        with self._lock:
            match argv:
                case ["sbatch", "--parsable", path]:
                    return self._submit(Path(path), folder, answer_file)
                case ["squeue", "--noheader", "--states=all", "--format=%i|%T|%r", jobs]:
                    return self._tell(jobs)
                case ["scancel", *ids]:
                    for number in map(int, ids):
                        if number in self._queue:
                            self._queue.remove(number)
                            self._states[number] = "CANCELLED"
                    return Answer(0)
                case _:
                    msg = f"Slurm on paper does not know {list(argv)}"
                    raise ValueError(msg)

    def close(self) -> None:
        """Stop the clock of the jobs."""
        self._stop.set()
        self._thread.join()

    def _submit(self, path: Path, folder: Path | None, answer_file: Path | None) -> Answer:
        if folder is None or answer_file is None or not path.is_file():
            return Answer(1, stderr="sbatch: error: Unable to open file")
        if not re.search(r"^#SBATCH --time=\d+:\d\d:\d\d$", path.read_text(encoding="utf-8"), re.MULTILINE):
            return Answer(1, stderr="sbatch: error: Requested time limit is invalid (missing or exceeds some limit)")
        self._number += 1
        self._folders[self._number] = folder
        self._states[self._number] = "PENDING"
        self._queue.append(self._number)
        answer_file.write_text(f"{self._number}\n", encoding="utf-8")
        return Answer(0, f"{self._number}\n")

    def _tell(self, jobs: str) -> Answer:
        self.polls += 1
        wanted = map(int, jobs.removeprefix("--jobs=").split(","))
        lines = [f"{number}|{self._states[number]}|None" for number in wanted if number in self._states]
        return Answer(0, "".join(f"{line}\n" for line in lines))

    def _run(self) -> None:
        while not self._stop.wait(_TICK_S):
            began = time.thread_time()
            with self._lock:
                self._advance(time.monotonic())
            self.cpu_s += time.thread_time() - began

    def _advance(self, now: float) -> None:
        while self._running and self._running[0][0] <= now:
            ends_at, number, duration_s = heapq.heappop(self._running)
            self._end(number, duration_s)
            self._ended.append((ends_at, number))
            self.busy_s += duration_s
        while self._queue and len(self._running) < self._slots:
            number = self._queue.popleft()
            duration_s = self._duration_s(self._folders[number])
            heapq.heappush(self._running, (now + duration_s, number, duration_s))
            self._states[number] = "RUNNING"
            (self._folders[number] / STDOUT).touch()
        self.most_running = max(self.most_running, len(self._running))
        while self._ended and self._ended[0][0] < now - _KEPT_S:
            _, number = self._ended.popleft()
            del self._states[number], self._folders[number]

    def _end(self, number: int, duration_s: float) -> None:
        folder = self._folders[number]
        self._states[number] = "COMPLETED"
        (folder / STDOUT).write_text(self._prints(folder, duration_s), encoding="utf-8")
        new = folder / f"{STATUS_FILE}.new"
        new.write_text(json.dumps(_STATUS | {"elapsed_s": duration_s}), encoding="utf-8")
        new.rename(folder / STATUS_FILE)
