"""A study that is killed again and again: the harness of `test_chaos.py`, and of `benchmarks/chaos.py` for training."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.support.warm import autotune

_WORK = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, f"start {sys.argv[2]}\\n".encode())
child = os.fork()
if child == 0:
    os.setsid()
    os.close(1)  # mpirun would wait for whoever can still write
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

[budget]
trials = {trials}

[repeats]
max_runs = 3

[verdict]
candidates = 1
confidence = 0.75
pairs = 3
max_pairs = 3
rounds = 2

[space.parameters.x]
type = "integer"
low = 1
high = 1000
default = 1
"""

TARGETS = ("coordinator", "worker", "start command")


@dataclass(frozen=True)
class ChaosStudy:
    """A study of a quick command in a folder of its own."""

    folder: Path
    trials: int = 8

    def write(self, *, mpi: bool = False) -> None:
        """Write the program and the study file; with `mpi` the program is started by the MPI start command."""
        (self.folder / "work.py").write_text(_WORK, encoding="utf-8")
        text = _STUDY.format(
            folder=self.folder, python=sys.executable, trials=self.trials, ranks="ranks = 1" if mpi else ""
        )
        (self.folder / "mine.toml").write_text(text, encoding="utf-8")

    def start(self) -> subprocess.Popen[bytes]:
        """Start a session of the study."""
        command = [sys.executable, "-m", "autotune", "study", "./mine.toml"]
        with (self.folder / "session.log").open("ab") as log:
            return subprocess.Popen(command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def said(self, command_name: str) -> list[dict[str, object]]:
        """Return what `autotune trials --json`, or `runs`, says; nothing before there is a storage."""
        asked = autotune(self.folder, command_name, "mine", "--json")
        return json.loads(asked.stdout) if asked.returncode == 0 else []

    def finished(self) -> dict[int, tuple[object, object]]:
        """Return the finished trials: number -> (configuration, value)."""
        rows = self.said("trials")
        return {int(str(row["trial"])): (row["x"], row["took_s"]) for row in rows if row["state"] != "running"}

    def stored_runs(self) -> list[tuple[object, ...]]:
        """Return every run in storage, in order: when it started, and of what."""
        return [(run["started"], run["trial"], run["series"], run["round"]) for run in self.said("runs")]

    def ended_runs(self) -> list[str]:
        """Return the configuration of every run that came to its end, in order."""
        return [line.split()[1] for line in self._log() if line.startswith("end ")]

    def left(self) -> list[str]:
        """Return the processes of this study that are still there."""
        found = []
        for process in _processes(self.belongs):
            with suppress(psutil.Error):  # it has ended since
                found.append(" ".join(process.cmdline())[:120])
        return found

    def belongs(self, process: psutil.Process) -> bool:
        """Whether a process works for this study: it runs in its folder, or was started by who does."""
        marks = (str(self.folder),)
        return any(mark in text for mark in marks for text in (process.cwd(), *process.cmdline()))

    def _log(self) -> list[str]:
        path = self.folder / "launches.log"
        return path.read_text().splitlines() if path.exists() else []


def kill_once(study: ChaosStudy, target: str, rng: random.Random) -> int:
    """Run a session and kill `target` once at a random instant; return 1, or 0 if the session ended before."""
    session = study.start()
    killed = strike(study, session, target, rng.uniform(0.5, 9.0))
    session.wait(240)
    return int(killed)


def strike(study: ChaosStudy, session: subprocess.Popen[bytes], target: str, after_s: float) -> bool:
    """Kill `target` after a while, as soon as there is one; False if the session ended before."""
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
    """Return what is still running after a generous while; Ray's agents take some seconds to notice."""
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
    everyone = [*family, *_processes(study.belongs)]
    return next((process.pid for process in everyone if _safely(wanted, process)), None)


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


def _processes(wanted: Callable[[psutil.Process], bool]) -> Iterator[psutil.Process]:
    for process in psutil.process_iter():
        if process.pid != os.getpid() and _safely(wanted, process):
            yield process


def _safely(wanted: Callable[[psutil.Process], bool], process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and wanted(process)
    except psutil.Error:
        return False
