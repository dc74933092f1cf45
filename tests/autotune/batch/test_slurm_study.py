"""Studies whose runs are jobs of a real Slurm: failures of the tuner, of a job and of the node."""

import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.fork_server import Fork
from tests.support.quick_study import quick_sections
from tests.support.study_folder import StudyFolder
from tests.support.waiting import wait_for
from tests.support.warm import autotune

pytestmark = [pytest.mark.slow]

# Each trial after the first waits while the file `hold` exists.
PROGRAM = """
import os, sys, time
held = os.path.basename(os.getcwd()).startswith(("00001", "00002", "00003", "00004"))
hold = os.path.join(os.path.dirname(sys.argv[1]), "hold")
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(log, f"start {sys.argv[2]} {os.environ['SLURM_JOB_ID']}\\n".encode())
time.sleep(float(os.environ["NAP"]))
while held and os.path.exists(hold):
    time.sleep(0.05)
os.write(log, f"end {sys.argv[2]} {os.environ['SLURM_JOB_ID']}\\n".encode())
print("took", 1 + abs(int(sys.argv[2]) - 7))
"""
STUDY = """
objective = "command"

[options]
argv = ["{python}", "-I", "-S", "{folder}/work.py", "{folder}/launches.log", "{{x}}"]
success = ["took"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]

[options.environment]
NAP = "{nap}"
"""
SITE = """
base = "slurm"
queue = "debug"
walltime = "{walltime}"
poll_s = 0.5
workers = 2
"""


class SlurmStudy(StudyFolder):
    """A study of a program that sleeps, in a folder of its own."""

    @property
    def hold(self) -> Path:
        """The file that its runs wait for."""
        return self.folder / "hold"

    def write(self, nap: float = 0.2, walltime: str = "5m") -> None:
        text = STUDY.format(python=sys.executable, folder=self.folder, nap=nap) + quick_sections(trials=5)
        (self.folder / "mine.toml").write_text(text)
        (self.folder / "work.py").write_text(PROGRAM)
        (self.folder / "site.toml").write_text(SITE.format(walltime=walltime))

    def start(self, *more: str) -> Fork:
        return super().start("--launcher", "slurm", "--site", "./site.toml", *more)

    def asked(self, *words: str) -> subprocess.CompletedProcess[str]:
        return autotune(self.folder, *words)


@pytest.fixture
def study(slurm, tmp_path):
    found = SlurmStudy(tmp_path)
    yield found
    found.close()


def whole(study: SlurmStudy) -> None:
    """Check that every trial is measured, and that each run is stored exactly once."""
    trials = study.table()
    assert [row["state"] for row in trials] == ["complete"] * 5
    runs = study.table("--runs")
    assert Counter(str(run["configuration"]["x"]) for run in runs) == Counter(x for x, _ in study.launches("end"))


@pytest.mark.full
def test_a_tuner_that_is_killed_finds_its_jobs_again(slurm, study):
    study.write()
    study.hold.touch()
    first = study.start()
    wait_for(lambda: len(study.launches("start")) >= 3)
    first.send_signal(signal.SIGKILL)
    first.wait()
    left = {job for job, state in slurm.states().items() if state in {"RUNNING", "PENDING"}}
    assert left, "the jobs end with the tuner"
    second = study.start()
    wait_for(lambda: "resumes a job of an earlier session" in study.log)
    study.hold.unlink()
    assert second.wait(300) == 0, study.log
    whole(study)
    assert left <= {job for _, job in study.launches("end")}


def test_ctrl_c_leaves_the_jobs_and_cancel_removes_them(slurm, study):
    study.write(nap=100.0)
    session = study.start()
    wait_for(lambda: study.launches("start"))
    session.send_signal(signal.SIGINT)
    assert session.wait(60) == 130
    assert "autotune cancel mine" in study.log
    assert "RUNNING" in slurm.states().values()
    cancelled = study.asked("cancel", "mine")
    assert (cancelled.returncode, cancelled.stderr) == (0, "")
    wait_for(lambda: not {"RUNNING", "PENDING", "COMPLETING"} & set(slurm.states().values()))
    assert "no job" in study.asked("cancel", "mine").stdout


@pytest.mark.full
def test_what_others_do_to_jobs_and_nodes_costs_a_run_at_most(slurm, study):
    study.write()
    study.hold.touch()
    session = study.start()
    wait_for(lambda: len(study.launches("start")) >= 2)
    _, job = study.launches("start")[-1]
    slurm.call("scancel", job)
    wait_for(lambda: "cancelled with scancel" in study.log)
    wait_for(lambda: len(study.launches("start")) >= 4)
    slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=DRAIN", "Reason=test")
    wait_for(lambda: "DRAIN" in slurm.call("sinfo", "-h", "-o", "%T").stdout.upper())
    study.hold.unlink()
    wait_for(lambda: "RUNNING" not in slurm.states().values() and "PENDING" in slurm.states().values())
    slurm.call("scontrol", "update", f"NodeName={slurm.host}", "State=RESUME")
    assert session.wait(300) == 0, study.log
    trials = study.table()
    assert [row["state"] for row in trials] == ["complete"] * 5


@pytest.mark.full
def test_a_job_beyond_its_wall_time_is_a_trial_that_took_too_long(slurm, study):
    study.write(nap=100.0, walltime="1m")
    session = study.start("--set", "budget.give_up_after=1")
    wait_for(lambda: study.launches("start"))
    _, job = study.launches("start")[0]
    slurm.call("scontrol", "update", f"JobId={job}", "EndTime=now+1")
    assert session.wait(300) == 4, study.log
    assert "timed out" in study.log
