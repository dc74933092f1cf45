"""Jobs of the launcher on a real Slurm."""

import shlex
from collections import Counter
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, MpiStart, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.slurm import NODE_KINDS, SLURM
from launchers.mpi import MpiFlavour
from launchers.mpi.srun import SRUN
from launchers.mpi_command import mpi_argv
from launchers.site import Site
from objectives import command
from objectives.base import Context
from tests.launchers.jobs import wait_for, wait_for_end, wait_for_output
from tests.support.processes import left_in
from tests.support.real_slurm import CORES, RealSlurm

pytestmark = pytest.mark.slow


@pytest.fixture
def folder(tmp_path, slurm):
    yield tmp_path
    slurm.clear()
    wait_for(lambda: not left_in(tmp_path))


def submit(slurm: RealSlurm, folder: Path, script: str, *options: str) -> str:
    file = folder / "job.sh"
    file.write_text(script)
    argv = ("sbatch", "--parsable", f"--chdir={folder}", "--output=job.out", *options, str(file))
    return slurm.call(*argv).stdout.strip()


def test_srun_in_a_job_passes_its_environment_on(slurm, folder):
    # Open MPI starts its daemons on other nodes this way, with the PATH and libraries of the job's modules.
    own = {"PATH": f"/opt/mine:{slurm.environment['PATH']}", "OF_THE_JOB": "yes"}
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", poll_s=0.1, setup=("export OF_THE_SETUP=yes",)))
    job_id = launcher.submit(Job(("srun", "--ntasks=1", "env"), folder, own))
    assert wait_for_end(launcher, job_id).exit_code == 0, (folder / "stderr").read_text()
    seen = (folder / "stdout").read_text().splitlines()
    assert {f"PATH={own['PATH']}", "OF_THE_JOB=yes", "OF_THE_SETUP=yes"} <= set(seen)


@pytest.mark.full
def test_preempted_run_is_lost(slurm, folder):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", queue="scavenge", cores_per_node=CORES, poll_s=0.1))
    job = Job(("sh", "-c", "echo ready; exec sleep 1000"), folder, resources=Resources(cores=CORES))
    job_id = launcher.submit(job)
    wait_for_output(job)
    submit(slurm, folder, "#!/bin/sh\n:\n")
    status = wait_for_end(launcher, job_id)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)
    assert status.message == "was preempted by another job"


def test_reason_for_waiting_is_reported(slurm, folder):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", poll_s=0.1))
    submit(slurm, folder, "#!/bin/sh\nexec sleep 1000\n", f"--ntasks={CORES}")
    (folder / "run").mkdir()
    job_id = launcher.submit(Job(("true",), folder / "run"))
    wait_for(lambda: "Resources" in launcher.poll([job_id])[job_id].message)
    slurm.call("scontrol", "hold", job_id.split(":")[1])
    wait_for(lambda: "is held" in launcher.poll([job_id])[job_id].message)


def test_slurm_reports_unlike_nodes_of_a_partition(slurm):
    for queue, unlike in (("pair", 1), ("debug", 0), ("", 0)):
        assert len(NODE_KINDS.read(slurm.call(*NODE_KINDS.command(queue)).stdout)) == unlike


@pytest.mark.full
def test_command_with_more_ranks_than_cores_of_a_node_runs_on_two_nodes(slurm, folder):
    cluster = {"nodes": 2, "cores_per_node": CORES, "cores": 2 * CORES}
    site = Site("slurm", queue="pair", nodes=2, cores_per_node=CORES, poll_s=0.1, mpi=MpiFlavour(SRUN, (), "srun"))
    options = {"argv": ["sh", "-c", "echo on $SLURMD_NODENAME"], "ranks": "np"}
    plan = command.plan(options, machine=cluster, run_job=lambda job: None, folder=folder)
    launcher = BatchLauncher(SLURM.scheduler, site)
    job = plan.objective.job({"np": 2 * CORES}, Context(folder))
    assert wait_for_end(launcher, launcher.submit(job)).exit_code == 0, (folder / "stderr").read_text()
    hosts = (folder / "stdout").read_text().split("on ")
    assert Counter(host.strip() for host in hosts if host) == {slurm.host: CORES, slurm.second: CORES}


@pytest.mark.full
def test_ranks_of_a_job_on_the_second_node_of_an_allocation_run_there(slurm, folder):
    for host in (slurm.host, slurm.second):
        resources = Resources(cores=1, cpus=(0,), hosts=(host,))
        job = Job(("sh", "-c", "echo on $SLURMD_NODENAME"), folder, mpi=MpiStart(1), resources=resources)
        argv = mpi_argv(MpiFlavour(SRUN, (), "srun"), job, online=(0, 1))
        script = f"#!/bin/sh\nsrun --nodes=1 --nodelist={host} --overlap {shlex.join(argv)}\n"
        number = submit(slurm, folder, script, "--partition=pair", "--nodes=2")
        assert slurm.wait_for_state(number, "COMPLETED", "FAILED") == "COMPLETED", (folder / "job.out").read_text()
        assert (folder / "job.out").read_text() == f"on {host}\n"
