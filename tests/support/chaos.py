"""A study that is killed again and again, for `test_chaos.py` and the training of `benchmarks/chaos.py`."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from tests.support.processes import command_line, living
from tests.support.quick_study import quick_sections
from tests.support.study_folder import StudyFolder

_WORK = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, f"start {sys.argv[2]}\\n".encode())
child = os.fork()
if child == 0:
    os.setsid()
    os.close(1)  # mpirun waits until no process can write
    os.close(2)
    time.sleep(60)
    os._exit(0)
time.sleep(0.2)
os.write(log, f"end {sys.argv[2]}\\n".encode())
print("took", 1 + abs(int(sys.argv[2]) - 7))
"""

_STUDY = """
objective = "command"

[options]
argv = ["{python}", "-I", "-S", "{folder}/work.py", "{folder}/launches.log", "{{x}}"]
{ranks}
success = ["took"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]
"""

TARGETS = ("coordinator", "worker", "start command")


@dataclass
class ChaosStudy(StudyFolder):
    """A study of a quick command in a folder."""

    trials: int = 8

    def write(self, *, mpi: bool = False) -> None:
        """Write the program and the study file; with `mpi` an MPI start command starts the program."""
        (self.folder / "work.py").write_text(_WORK, encoding="utf-8")
        text = _STUDY.format(folder=self.folder, python=sys.executable, ranks="ranks = 1" if mpi else "")
        text += quick_sections(trials=self.trials, repeats="[repeats]\nmax_runs = 3\n")
        (self.folder / "mine.toml").write_text(text, encoding="utf-8")

    def finished(self) -> dict[int, tuple[object, object]]:
        """Return the finished trials: number -> (configuration, value)."""
        rows = self.table()
        return {int(str(row["trial"])): (row["x"], row["took_s"]) for row in rows if row["state"] != "running"}

    def stored_runs(self) -> list[tuple[object, ...]]:
        """Return (start, trial, series, round) of every stored run, in order."""
        return [(run["started"], run["trial"], run["series"], run["round"]) for run in self.table("--runs")]

    def ended_runs(self) -> list[str]:
        """Return the x of every run that ended by itself, in order."""
        return [x for (x,) in self.launches("end")]

    def left(self) -> list[str]:
        """Return the running processes of this study."""
        return [line[:120] for process in living(self.belongs) if (line := command_line(process))]

    def belongs(self, process: psutil.Process) -> bool:
        """Whether a process belongs to this study by its working folder or command line."""
        return any(str(self.folder) in text for text in (process.cwd(), *process.cmdline()))


def kill_once(study: ChaosStudy, target: str, rng: random.Random) -> int:
    """Run a session and kill `target` once at a random instant; return 1, or 0 if the session ended before."""
    session = study.start()
    killed = strike(study, session, target, rng.uniform(0.5, 9.0))
    session.wait(240)
    return int(killed)


def strike(study: ChaosStudy, session: subprocess.Popen[bytes], target: str, after_s: float) -> bool:
    """Kill `target` after `after_s`, as soon as it exists; return False if the session ended before."""
    deadline = time.monotonic() + after_s
    while time.monotonic() < deadline and session.poll() is None:
        time.sleep(0.02)
    victim = _until(lambda: _victim(study, session, target), 20.0) if session.poll() is None else None
    if victim is None:
        return False
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def nothing_left(study: ChaosStudy, patience_s: float = 30.0) -> list[str]:
    """Return the processes that still run after a generous wait; Ray's agents take some seconds to end."""
    deadline = time.monotonic() + patience_s
    while study.left() and time.monotonic() < deadline:
        time.sleep(0.2)
    return study.left()


def _victim(study: ChaosStudy, session: subprocess.Popen[bytes], target: str) -> int | None:
    if target == "coordinator":
        return session.pid
    wanted: Callable[[psutil.Process], bool] = (
        (lambda p: p.name().startswith("ray::") and p.name() != "ray::IDLE" and "gent" not in p.name())
        if target == "worker"
        else (lambda p: p.name() in {"mpirun", "orterun", "mpiexec", "prterun"})
    )
    family = psutil.Process(session.pid).children(recursive=True) if session.poll() is None else []
    found = [*living(wanted, family), *living(lambda process: study.belongs(process) and wanted(process))]
    return found[0].pid if found else None


def _until(find: Callable[[], int | None], patience_s: float) -> int | None:
    deadline = time.monotonic() + patience_s
    while time.monotonic() < deadline:
        try:
            found = find()
        except psutil.Error:
            found = None
        if found is not None:
            return found
        time.sleep(0.01)
    return None
