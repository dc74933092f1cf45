"""The slots of a job started inside a Slurm job: one for each CPU of its host."""

import pytest

from launchers import Job, Resources
from launchers.local import LocalLauncher
from launchers.mpi.slurm_slots import with_slots

# As in the step of a pilot's node, where the list of hosts is still that of the whole job.
PILOT = {
    "SLURM_JOB_NODELIST": "n[1-3]",
    "SLURM_NODELIST": "n[1-3]",
    "SLURM_JOB_NUM_NODES": "3",
    "SLURM_NNODES": "1",
    "SLURM_JOB_CPUS_PER_NODE": "48(x2),24",
    "SLURM_CPUS_ON_NODE": "24",
    "SLURM_TASKS_PER_NODE": "1",
    "SLURMD_NODENAME": "n3",
}


def test_job_of_one_host_has_the_slots_of_this_one_and_no_other():
    assert with_slots(PILOT, 1) == PILOT | {
        "SLURM_JOB_NODELIST": "n3",
        "SLURM_NODELIST": "n3",
        "SLURM_JOB_NUM_NODES": "1",
        "SLURM_NNODES": "1",
        "SLURM_JOB_CPUS_PER_NODE": "24",
        "SLURM_TASKS_PER_NODE": "24",
    }


def test_job_of_several_hosts_has_the_slots_of_each():
    assert with_slots(PILOT, 2) == PILOT | {"SLURM_TASKS_PER_NODE": "48(x2),24"}


@pytest.mark.parametrize("missing", ["SLURMD_NODENAME", "SLURM_CPUS_ON_NODE"])
@pytest.mark.parametrize("nodes", [1, 2])
def test_environment_outside_slurm_is_unchanged(missing, nodes):
    caller = {name: value for name, value in PILOT.items() if name != missing}
    assert with_slots(caller, nodes) == caller


def test_job_in_a_pilot_sees_its_slots(tmp_path, monkeypatch):
    for name, value in PILOT.items():
        monkeypatch.setenv(name, value)
    seen = LocalLauncher().environment(Job(("solve",), tmp_path, resources=Resources(cores=8)))
    assert (seen["SLURM_TASKS_PER_NODE"], seen["SLURM_NODELIST"]) == ("24", "n3")
