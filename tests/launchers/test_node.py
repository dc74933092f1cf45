"""Jobs on their node: the cores that the batch system confines them to, and the end of their wall time."""

import json
import subprocess
import sys

import pytest

from launchers import STDOUT, EndReason, Job, MpiStart, Resources, node
from launchers.batch.job_files import SCRIPT_FILE
from launchers.node import JOB_FILE, cgroup_cpus
from launchers.status import read_status
from launchers.supervisor import WALL_TIME_REACHED
from tests.launchers.jobs import wait_for

OF_VERSION_1 = "12:memory:/slurm/job_7\n3:cpuset:/slurm/job_7/step_batch\n1:name=systemd:/\n0::/\n"
OF_VERSION_2 = "0::/system.slice/slurmstepd.scope/job_7/step_batch\n"
OLD, NEW = "cpuset.effective_cpus", "cpuset.cpus.effective"


@pytest.mark.parametrize(
    ("groups", "files", "cpus"),
    [
        (OF_VERSION_1, {f"cpuset/{OLD}": "0-63", f"cpuset/slurm/job_7/step_batch/{OLD}": "4-5,8"}, {4, 5, 8}),
        (OF_VERSION_2, {NEW: "0-63", f"system.slice/slurmstepd.scope/job_7/step_batch/{NEW}": "4-5"}, {4, 5}),
        # A group without the controller has the CPUs of its parent.
        (OF_VERSION_2, {NEW: "0-63", f"system.slice/slurmstepd.scope/job_7/{NEW}": "6"}, {6}),
        # A container sees its own group as the root, but may show the path that it has outside.
        ("3:cpuset:/docker/0f3a\n", {f"cpuset/{OLD}": "0-1"}, {0, 1}),
        ("0::/../../other\n", {NEW: "0-1"}, {0, 1}),
        # Both versions side by side, with the cores on the older one.
        ("3:cpuset:/\n0::/\n", {f"cpuset/{OLD}": "0-3", "unified/cgroup.procs": "1"}, {0, 1, 2, 3}),
        ("2:cpu,cpuset:/a\n", {f"cpuset/a/{OLD}": "2"}, {2}),
        (OF_VERSION_2, {}, None),
        (OF_VERSION_2, {NEW: "\n"}, None),
        ("nonsense\n", {NEW: "0-3"}, {0, 1, 2, 3}),
        ("0::/\n", {NEW: "many"}, None),
    ],
)
def test_cpus_of_a_control_group(groups, files, cpus, tmp_path):
    own, root = tmp_path / "proc" / "self" / "cgroup", tmp_path / "sys" / "fs" / "cgroup"
    own.parent.mkdir(parents=True)
    own.write_text(groups)
    # The folder above the root is not a group.
    for name, text in {**files, f"../{NEW}": "7"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    assert cgroup_cpus(str(tmp_path / "proc"), str(tmp_path / "sys")) == cpus


def test_machine_without_control_groups_has_no_cgroup_cpus(tmp_path):
    assert cgroup_cpus(str(tmp_path), str(tmp_path)) is None


@pytest.mark.parametrize(("walltime_s", "said"), [(0.5, WALL_TIME_REACHED), (60, "")])
def test_job_that_is_told_to_end_knows_whether_its_wall_time_is_over(walltime_s, said, launcher, tmp_path):
    launcher.submit(Job(("sh", "-c", "echo ready; exec sleep 1000"), tmp_path))
    spec = json.loads((tmp_path / JOB_FILE).read_text())
    assert spec["walltime_s"] == 3600
    (tmp_path / JOB_FILE).write_text(json.dumps(spec | {"walltime_s": walltime_s, "grace_s": 0.2}))
    with subprocess.Popen(["bash", "-c", f"sleep 0.5; . {tmp_path / SCRIPT_FILE}"]) as job:
        wait_for(lambda: (tmp_path / STDOUT).exists() and (tmp_path / STDOUT).read_text())
        job.terminate()
    status = read_status(tmp_path)
    assert (status.reason, status.message) == (EndReason.CANCELLED, said)


@pytest.mark.parametrize(
    ("cpus", "start"), [(None, "--bind-to none "), ({0, 1, 2, 3}, "--bind-to none "), ({2, 3}, "")]
)
def test_node_uses_the_binding_command_only_in_a_cpuset(cpus, start, launcher, tmp_path, monkeypatch):
    launcher.submit(Job(("a.out",), tmp_path, mpi=MpiStart(2), resources=Resources(cores=2)))
    token = json.loads((tmp_path / JOB_FILE).read_text())["token"]
    ran = []
    monkeypatch.setattr(node, "cgroup_cpus", lambda: cpus)
    monkeypatch.setattr(node, "supervise", lambda _, spec: ran.append(" ".join(spec["argv"])) or 0)
    monkeypatch.setattr(node, "continue_in_child", lambda _: None)
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    monkeypatch.setattr(sys, "argv", ["node.py", str(tmp_path), token])
    assert node.main() == 0
    assert ran == [f"mpirun -np 2 {start}a.out"]
