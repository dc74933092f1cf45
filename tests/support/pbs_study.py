"""A study whose runs are jobs of the fake PBS; each session is a process."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

from autotune.records.study import State
from autotune.storage.study_store import StudyStore
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.fork_server import Fork
from tests.support.quick_study import quick_sections
from tests.support.study_folder import StudyFolder
from tests.support.waiting import PATIENCE_S
from tests.support.warm import autotune

# A run waits while the name of its folder matches the pattern in the file `hold`.
_PROGRAM = """
import os, re, sys, time
folder, best, x = sys.argv[1:]
name, job = os.path.basename(os.getcwd()), os.environ["PBS_JOBID"]
log = os.open(folder + "/launches.log", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def held():
    try:
        with open(folder + "/hold") as file:
            return re.match(file.read(), name)
    except FileNotFoundError:
        return None
os.write(log, f"start {x} {job} {name}\\n".encode())
while held():
    time.sleep(0.02)
os.write(log, f"end {x} {job} {name}\\n".encode())
print("took", 1 + abs(int(x) - int(best)))
"""
_STUDY = """
objective = "command"

[options]
argv = ["{python}", "-I", "-S", "{folder}/work.py", "{folder}", "{best}", "{{x}}"]
success = ["took"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]

[sampler]
name = "random"
warm_start = false
"""
# As a user of Gadi writes it, but without modules.
_SITE = """
base = "gadi"
account = "ab12"
modules = []
poll_s = 0.2
workers = 3
max_jobs = 10
walltime = "10m"
"""
# A resource that only this site has: `-l wd`.
_RESOURCES = "wd"
# `python -m autotune`, but it waits only two seconds for a status that was written on a node which then failed.
_AUTOTUNE = """
import runpy
from launchers.batch import BatchLauncher
init = BatchLauncher.__init__
init.__defaults__ = (*init.__defaults__[:-2], 2.0, "")
runpy.run_module("autotune", run_name="__main__", alter_sys=True)
"""


class PbsStudy(StudyFolder):
    """A study in a folder, and its sessions.

    `more_path` is a folder whose commands take precedence over those of the cluster.
    """

    def __init__(self, folder: Path, cluster: FakeCluster) -> None:
        super().__init__(folder)
        self.cluster = cluster
        self.more_path = folder / "bin"
        cluster.switch("resources", _RESOURCES)

    def write(self, trials: int = 5, best: int = 1) -> None:
        """Write the program, the study file and the site file. With `best` 1 the default wins without a verdict."""
        text = _STUDY.format(python=sys.executable, folder=self.folder, best=best) + quick_sections(trials=trials)
        (self.folder / "mine.toml").write_text(text)
        (self.folder / "work.py").write_text(_PROGRAM)
        self.write_site()

    def write_site(self) -> None:
        """Write only the site file, for another study file."""
        (self.folder / "site.toml").write_text(_SITE)

    def wrap_qsub(self, lines: str) -> None:
        """Run these lines of shell instead of the first qsub. They may call `qsub "$@"`; `$study` is the folder."""
        self.more_path.mkdir()
        qsub = self.more_path / "qsub"
        names = f'study={self.folder}\nqsub() {{ {self.cluster.bin}/qsub "$@"; }}\n'
        once = f'if mkdir "$study/wrapped" 2>/dev/null; then\n{lines}\nelse qsub "$@"; fi\n'
        qsub.write_text(f"#!/bin/sh\n{names}{once}")
        qsub.chmod(0o755)

    def hold(self, folders: str | None) -> None:
        """Make runs wait in folders whose names match this pattern; None releases them."""
        path = self.folder / "hold"
        if folders is None:
            path.unlink()
        else:
            path.with_suffix(".new").write_text(folders)
            path.with_suffix(".new").replace(path)

    def start(self, *more: str) -> Fork:
        """Start a session."""
        words = ("--launcher", "pbs", "--site", "./site.toml", *more)
        return super().start(*words, python=("-c", _AUTOTUNE), environment=self._environment)

    def run(self, *more: str) -> None:
        """Run a session to its end."""
        assert self.start(*more).wait(PATIENCE_S) == 0, self.log

    def kill(self, session: Fork) -> None:
        """Kill a session with SIGKILL."""
        session.send_signal(signal.SIGKILL)
        session.wait()

    def asked(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run another command to its end."""
        return autotune(self.folder, *words, environment=self._environment)

    @property
    def store(self) -> StudyStore:
        """The stored study."""
        return StudyStore.read(f"sqlite:///{self.folder}/autotune.db", "mine")

    def launches(self, what: str = "start", folder: str = "") -> list[tuple[str, str, str]]:
        """Return (x, job, folder) for each start or end of a run whose folder name begins with `folder`."""
        return [(x, job, name) for x, job, name in super().launches(what) if name.startswith(folder)]

    def active(self) -> set[str]:
        """Return the jobs that are queued or running."""
        return {job["id"] for job in self.cluster.state.active()}

    def check(self, trials: int = 5) -> None:
        """Check that every trial is complete, and that each run that ended is stored exactly once."""
        store = self.store
        assert [trial.state for trial in store.trials()] == [State.COMPLETE] * trials, self.log
        stored = Counter((str(run.configuration["x"]), Path(run.job["folder"]).name) for run in store.runs())
        assert stored == Counter((x, name) for x, _, name in self.launches("end"))
        assert set(stored.values()) == {1}
        assert self.active() == set()

    @property
    def _environment(self) -> dict[str, str]:
        # Several threads of each command would only compete for the few cores of this machine.
        few = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return os.environ | few | {"PATH": f"{self.more_path}{os.pathsep}{self.cluster.path}"}
