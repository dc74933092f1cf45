"""The stand-in for Slurm without processes: its commands are called in-process, and jobs run when squeue is called.

So each job is queued or running when its submitter dies, and has ended when the next session asks.
"""

import fcntl
import io
import json
import os
import shlex
from collections.abc import Collection, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

from launchers.batch.commands import Answer, not_started_answer
from launchers.node import CLAIM_FILE, JOB_FILE
from tests.launchers.fakes.options import RefusedError
from tests.launchers.fakes.slurm import COMMANDS
from tests.launchers.fakes.state import Record, State
from tests.support.faults.library import elsewhere
from tests.support.faults.recorded import made

FOLDER = "queue"


class RecordedJobs(State):
    """Jobs without processes."""

    def _start(self, number: str) -> int:
        return 0

    def ask(self, number: str, why: str) -> bool:
        """End a job."""
        job = self.read(number)
        if job is None or job["state"] == "ended":
            return False
        self.ended(number, why, None)
        return True

    def advance(self) -> None:
        """Run the started jobs to their end."""
        for job in [job for job in self.active() if job["state"] == "running"]:
            self.ended(job["id"], "exited", _run(job))


def make(folder: Path) -> None:
    """Create a scheduler without jobs, and files for its commands, which are never executed."""
    for name in ("active", "ended", "scripts", "runners", "bin"):
        (folder / FOLDER / name).mkdir(parents=True)
    (folder / FOLDER / "slots").write_text("8")
    (folder / FOLDER / "history").write_text("")
    for name in COMMANDS:
        (folder / FOLDER / "bin" / name).write_text("#!/bin/false\n")
        (folder / FOLDER / "bin" / name).chmod(0o755)


def run_command(
    argv: Sequence[str],
    folder: Path | None = None,
    answer_file: Path | None = None,
    input_file: Path | None = None,
    variables: Collection[str] = (),
) -> Answer:
    """Imitate a command of the scheduler, and write its answer to the same file."""
    state = RecordedJobs(Path(FOLDER).absolute())
    if argv[0] == "squeue":
        with elsewhere():
            state.advance()
    return called(state, argv, folder, answer_file)


def called(state: State, argv: Sequence[str], folder: Path | None, answer_file: Path | None) -> Answer:
    """Call a command of the stand-in in this process."""
    printed, complained = io.StringIO(), io.StringIO()
    try:
        with Path(os.devnull).open("w+b") if answer_file is None else answer_file.open("w+b") as file:
            with suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with elsewhere(), chdir(folder or "."), redirect_stdout(printed), redirect_stderr(complained):
                try:
                    code = COMMANDS[argv[0]](list(argv[1:]), state)
                except RefusedError as error:
                    code = error.code
                    complained.write(str(error))
                file.write(printed.getvalue().encode())
                file.flush()
    except OSError as error:
        return not_started_answer(argv, error)
    return Answer(code, printed.getvalue(), complained.getvalue())


def _run(job: Record) -> int:
    """Imitate the job script on its node; return its exit code."""
    folder, token = (word for word in shlex.split(job["script"].strip().splitlines()[-1])[-2:])
    try:
        spec = json.loads((Path(folder) / JOB_FILE).read_bytes())
        if spec["token"] != token:
            return 1
        with (Path(folder) / CLAIM_FILE).open("x") as claim:
            claim.write(job["id"])
    except OSError:
        return 1
    made(Path(folder), int(spec["argv"][-1]))
    return 0
