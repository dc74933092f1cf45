"""Jobs of the launcher on a real Grid Engine."""

import pytest

from launchers import EndReason, Job, JobState, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.grid_engine import GRID_ENGINE
from launchers.site import Site
from tests.launchers.jobs import wait_for, wait_for_end, wait_for_output
from tests.support.processes import left_in

pytestmark = [
    pytest.mark.full,
]

# Leaves its session and its parent.
ORPHAN = "(setsid sleep 1000 &) ; echo ready; sleep 1000"


@pytest.fixture
def folder(tmp_path, grid_engine):
    yield tmp_path
    grid_engine.clear()
    wait_for(lambda: not left_in(tmp_path))


@pytest.fixture
def launcher(grid_engine):
    return BatchLauncher(GRID_ENGINE.scheduler, Site("grid-engine", cores_per_node=2, poll_s=0.1), patience_s=1.0)


def test_job_gets_its_slots(launcher, folder):
    job = Job(("sh", "-c", "echo $NSLOTS; cat $PE_HOSTFILE"), folder, resources=Resources(cores=2))
    assert wait_for_end(launcher, launcher.submit(job)).exit_code == 0
    slots, hosts = (folder / "stdout").read_text().splitlines()
    assert (slots, hosts.split()[1]) == ("2", "2")


def test_job_deleted_by_others_is_not_lost(launcher, grid_engine, folder):
    job = Job(("sh", "-c", ORPHAN), folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    grid_engine.call("qdel", job_id.split(":")[1])
    status = wait_for_end(launcher, job_id)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)
    assert "deleted by somebody" in status.message
    assert left_in(folder) == []


def test_run_suspended_by_a_better_partition_is_lost(launcher, grid_engine, folder):
    with grid_engine.better_queue() as better:
        job = Job(("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.1; done"), folder)
        usual = BatchLauncher(GRID_ENGINE.scheduler, Site("grid-engine", queue="all.q", poll_s=0.1))
        job_id = usual.submit(job)
        wait_for_output(job)
        grid_engine.call("qsub", "-terse", "-b", "y", "-q", better, "-o", "/dev/null", "-j", "y", "sleep", "3")
        wait_for(lambda: "S" in grid_engine.jobs().get(job_id.split(":")[1], "") and usual.poll([job_id]))
        (folder / "go").touch()
        status = wait_for_end(usual, job_id)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)
    assert status.message == "was suspended for a while"


def test_reason_for_waiting_is_reported(launcher, grid_engine, folder):
    (folder / "first").mkdir()
    first = Job(("sh", "-c", "echo ready; exec sleep 1000"), folder / "first", resources=Resources(cores=2))
    launcher.submit(first)
    wait_for_output(first)
    job_id = launcher.submit(Job(("true",), folder))
    full = "All queues dropped because of overload or full"
    wait_for(lambda: launcher.poll([job_id])[job_id].message == full)
    grid_engine.call("qhold", job_id.split(":")[1])
    wait_for(lambda: launcher.poll([job_id])[job_id].message == "is held (qrls lets it go)")


def test_missing_module_ends_the_job_with_the_error_of_its_shell(grid_engine, folder):
    site = Site("grid-engine", poll_s=0.1, modules=("no/such/module",))
    launcher = BatchLauncher(GRID_ENGINE.scheduler, site, patience_s=0.5)
    status = wait_for_end(launcher, launcher.submit(Job(("touch", "ran"), folder)))
    assert (status.reason, (folder / "ran").exists()) == (EndReason.NOT_STARTED, False)
    assert "module" in status.message


def test_jobs_outlive_the_master(launcher, grid_engine, folder):
    job = Job(("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.1; done; exit 3"), folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    grid_engine.stop_master()
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    (folder / "go").touch()
    assert wait_for_end(launcher, job_id).exit_code == 3
