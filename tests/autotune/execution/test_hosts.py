"""Studies on a Ray cluster of several hosts: some die, and another is cut off."""

import os
import subprocess
import sys
import time

import pytest

from autotune.errors import ExitCode
from tests.support.hosts import Hosts, ray_node, why_not
from tests.support.quick_study import ONE_RUN, quick_sections
from tests.support.study_folder import StudyFolder
from tests.support.waiting import PATIENCE_S, wait_for

pytestmark = [
    pytest.mark.full,
    pytest.mark.cores,
    pytest.mark.skipif(bool(why_not()), reason=why_not()),
]

TRIALS = 16

WORK = """
import os, sys, time
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
host, cpus = os.uname().nodename, ",".join(map(str, sorted(os.sched_getaffinity(0))))
os.write(log, f"start {sys.argv[2]} {host} {cpus}\\n".encode())
time.sleep(0.7)
while os.path.exists(f"{sys.argv[1]}-hold-{host}"):
    time.sleep(0.05)
os.write(log, f"end {sys.argv[2]} {host} {cpus}\\n".encode())
print("took", 1 + abs(int(sys.argv[2]) - 7))
"""

STUDY = f"""
objective = "command"
[options]
argv = ["{sys.executable}", "-I", "-S", "FOLDER/work.py", "FOLDER/launches.log", "{{x}}"]
success = ["took"]
metrics = [{{ name = "took_s", unit = "s", pattern = 'took (\\d+)' }}]
""" + quick_sections(trials=TRIALS, workers=5, repeats=f"{ONE_RUN}baseline_every = 0\ncaps = false\n")

# Ray takes half a minute to believe that a host is dead.
IMPATIENT = {
    "RAY_health_check_initial_delay_ms": "1000",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "6",
}


class Place(StudyFolder):
    """A folder that all hosts see."""

    def __init__(self, folder):
        super().__init__(folder)
        self.meeting = folder / "meet"
        (folder / "work.py").write_text(WORK)
        (folder / "mine.toml").write_text(STUDY.replace("FOLDER", str(folder)))

    @property
    def settings(self):
        return {
            **IMPATIENT,
            "RAY_AUTH_MODE": "token",
            "RAY_AUTH_TOKEN_PATH": str(self.meeting / "token"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }

    def study(self, host, *more, **settings):
        address = self.meeting / "address"
        wait_for(address.exists)
        argv = [
            sys.executable,
            "-m",
            "autotune",
            "study",
            "./mine.toml",
            "--ray-address",
            address.read_text().strip(),
            *more,
        ]
        return host.start(argv, self.folder, self.folder / "session.log", **{**self.settings, **settings})

    def hold(self, name):
        """Let no run on a host end any more; return those that it has then."""
        (self.folder / f"launches.log-hold-{name}").touch()
        return wait_for(lambda: self.running_on(name))

    def running_on(self, name):
        started = [x for x, host, _ in self.launches("start") if host == name]
        ended = [x for x, host, _ in self.launches("end") if host == name]
        return [x for x in started if x not in ended]


def work(host):
    return host.running("work.py")


def test_a_host_that_dies_and_one_that_is_cut_off_cost_their_runs_only(tmp_path):
    place = Place(tmp_path)
    with Hosts() as hosts:
        head, dies, lost = (hosts.add(f"host{n}", f"10.77.0.{n}") for n in (1, 2, 3))
        nodes = [ray_node(host, place.meeting, place.settings, head=host is head) for host in (head, dies, lost)]
        session = place.study(head, "--ray-nodes", "3")
        wait_for(lambda: len(place.launches("end")) >= 4)
        killed_runs = place.hold("host2")
        dies.kill()
        wait_for(lambda: len(place.launches("end")) >= 8)
        cut_off_runs = place.hold("host3")
        lost.cut_off()
        assert session.wait(PATIENCE_S) == 0, place.log
        # Their jobs ended with the study, those of the host that is cut off when it saw that it was alone.
        wait_for(lambda: not work(head) and not work(lost))
        wait_for(lambda: not lost.processes())
        (place.meeting / "stop").touch()
        wait_for(lambda: not head.processes())
        assert nodes[0].wait(PATIENCE_S) == 0
    trials = {row["trial"]: row for row in place.table()}
    assert len(trials) == TRIALS
    assert {row["state"] for row in trials.values()} == {"complete"}
    assert len({row["x"] for row in trials.values()}) == TRIALS
    tuning = [run for run in place.table("--runs") if not run["series"]]
    assert len(tuning) == TRIALS
    ended = [x for x, _, _ in place.launches("end")]
    assert {str(row["x"]) for row in trials.values()} <= set(ended)
    made_last = {x: host for x, host, _ in place.launches("start")}
    assert "host2" not in {made_last[x] for x in killed_runs}, place.log
    assert {made_last[x] for x in cut_off_runs} <= {"host1"}, place.log
    ended_on = {(x, host) for x, host, _ in place.launches("end")}
    assert {(str(run["configuration"]["x"]), run["job"]["resources"]["hosts"][0]) for run in tuning} <= ended_on
    assert {host for _, host, _ in place.launches("start")} == {"host1", "host2", "host3"}
    assert "host2 has left the Ray cluster" in place.log
    assert "host3 has left the Ray cluster" in place.log


def test_jobs_end_with_a_killed_tuner_and_a_study_without_a_node_says_so(tmp_path):
    place = Place(tmp_path)
    with Hosts() as hosts:
        head, worker = (hosts.add(f"host{n}", f"10.77.0.{n}") for n in (1, 2))
        ray_node(head, place.meeting, place.settings, head=True, cpus=0)
        ray_node(worker, place.meeting, place.settings)
        killed = place.study(head)
        wait_for(lambda: len(place.launches("end")) >= 3 and work(worker))
        left = [process.pid for process in work(worker)]
        head.running("autotune study")[0].kill()
        killed.wait(PATIENCE_S)
        before = {row["trial"]: row["x"] for row in place.table() if row["state"] == "complete"}
        again = place.study(head)
        wait_for(lambda: place.log.count("space: ") == 2)
        assert not {*left} & {process.pid for process in work(worker)}
        wait_for(lambda: len(place.launches("end")) >= 8 and work(worker))
        worker.kill()
        assert again.wait(PATIENCE_S) == ExitCode.CANNOT_RUN_HERE, place.log
        assert "nodes of the Ray cluster that are left: none" in place.log
        (place.meeting / "stop").touch()
        wait_for(lambda: not head.processes())
    after = {row["trial"]: row["x"] for row in place.table() if row["state"] == "complete"}
    assert len(after) > len(before) >= 1
    assert before.items() <= after.items()
    runs = [(run["started"], run["trial"]) for run in place.table("--runs")]
    assert len(set(runs)) == len(runs)
    assert {cpus for _, _, cpus in place.launches("start")} == {"0", "1"}


# Slurm's commands, as far as the script uses them; what `srun` starts is started by the test, on the other host.
SLURM = {
    "scontrol": "printf '%s\\n' n1 n2",
    "srun": 'while [ "$1" != bash ]; do shift; done\nprintf "%s\\0" "$@" >new && mv new asked\n'
    "until [ -e step-ended ]; do sleep 0.1; done",
    "sbatch": 'echo "$1" >submitted',
}


def test_the_job_script_of_a_pilot_runs_a_study_on_the_nodes_of_its_allocation(tmp_path):
    folder = tmp_path / "it's a $dir"
    folder.mkdir()
    place = Place(folder)
    for name, text in SLURM.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    options = ["--nodes=2", "--workers=4", "--trials=6"]
    subprocess.run([sys.executable, "-m", "autotune", "pilot", "./mine.toml", *options], cwd=folder, check=True)
    script = str(folder / "autotune-job.sh")
    allocation = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "SLURM_JOB_ID": "17",
        "SLURM_JOB_NODELIST": "n[1-2]",
        "SLURM_JOB_END_TIME": str(int(time.time()) + 7200),
    }
    with Hosts() as hosts:
        first, second = hosts.add("n1", "10.77.0.1"), hosts.add("n2", "10.77.0.2")
        job = first.start(["bash", script], folder, folder / "job.log", SLURMD_NODENAME="n1", **allocation)
        wait_for((folder / "asked").exists)
        asked = (folder / "asked").read_text().split("\0")[:-1]
        assert asked == ["bash", "-l", script, "ray-node", str(folder / ".autotune-ray-17")]
        step = second.start(asked, folder, folder / "step.log", SLURMD_NODENAME="n2", **allocation)
        assert step.wait(120) == 0, (folder / "job.log").read_text()
        (folder / "step-ended").touch()
        assert job.wait(PATIENCE_S) == 0, (folder / "job.log").read_text()
        wait_for(lambda: not first.processes() and not second.processes())
    assert {row["state"] for row in place.table()} == {"complete"}
    assert {host for _, host, _ in place.launches("end")} == {"n1", "n2"}
    assert "inside Slurm job 17" in (folder / "job.log").read_text()
    assert not (folder / "submitted").exists()
    assert not (folder / ".autotune-ray-17").exists()
