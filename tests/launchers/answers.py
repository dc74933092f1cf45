"""A Slurm that only answers, and a clock that tests move by hand, for testing how answers are interpreted."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from launchers import STDOUT
from launchers.batch.commands import Answer
from launchers.supervisor import STATUS_FILE

POLL_S = 30.0
PATIENCE_S = 60.0
AWAY = Answer(1, stderr="slurm_load_jobs error: Unable to contact slurm controller (connect failure)")


@dataclass
class FakeSlurm:
    """Holds the state of each job and counts queries; it may be absent, lack a command, or keep a job alive."""

    states: dict[str, str] = field(default_factory=dict)
    asked: list[list[str]] = field(default_factory=list)
    trouble: Answer | None = None
    refusal: Answer | None = None
    cancelled_state: str | None = "CANCELLED"
    missing: str = ""
    immortal: str = ""
    before_squeue: Callable[[], object] = lambda: None

    def __call__(self, argv, folder=None, answer_file=None, input_file=None) -> Answer:
        self.asked.append(list(argv))
        if argv[0] == self.missing:
            return Answer(127, stderr=f"{argv[0]}: No such file or directory")
        if self.trouble is not None:
            return self.trouble
        return {"sbatch": self._sbatch, "squeue": self._squeue, "scancel": self._scancel}[argv[0]](argv, answer_file)

    def commands(self, name: str) -> list[list[str]]:
        return [argv for argv in self.asked if argv[0] == name]

    def _sbatch(self, argv, answer_file) -> Answer:
        if self.refusal is not None:
            return self.refusal
        number = str(len(self.states) + 1)
        self.states[number] = "PENDING|Priority"
        answer_file.write_text(f"{number}\n")
        return Answer(0, f"{number}\n")

    def _squeue(self, argv, _) -> Answer:
        self.before_squeue()
        wanted = argv[-1].removeprefix("--jobs=").split(",")
        known = [number for number in wanted if number in self.states]
        if not known and len(wanted) == 1:
            return Answer(1, stderr="slurm_load_jobs error: Invalid job id specified")
        lines = (f"{number}|{self.states[number]}{'' if '|' in self.states[number] else '|None'}" for number in known)
        return Answer(0, "\n".join(lines) + "\n")

    def _scancel(self, argv, _) -> Answer:
        for number in argv[1:]:
            if number in self.states and self.cancelled_state is not None and number != self.immortal:
                self.states[number] = self.cancelled_state
        return Answer(0)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s

    def move(self, by_s: float) -> None:
        self.now_s += by_s


def start(folder: Path) -> None:
    (folder / STDOUT).touch()


def end(folder: Path, reason: str = "exited", exit_code: int | None = 0, message: str = "") -> None:
    start(folder)
    status = {"state": "ended", "reason": reason, "exit_code": exit_code, "message": message}
    usage = {"elapsed_s": 2.0, "cpu_s": 1.0, "peak_memory_bytes": 5}
    (folder / STATUS_FILE).write_text(json.dumps(status | usage))
