"""Jobs on stand-in schedulers, which really run them, under what users, administrators and broken nodes do.

The stand-ins refuse everything that they do not know.
"""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from launchers import STDERR, EndReason, Job, JobState, LaunchError, MpiStart, Resources
from launchers.batch import BatchLauncher, QueueFullError
from launchers.batch_systems.base import QUEUE_LOG
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.batch_systems.slurm import SLURM
from launchers.site import Site
from tests.launchers.fakes.cluster import FAKED, FakeCluster
from tests.launchers.jobs import STUBBORN, python, wait_for, wait_for_end, wait_for_output
from tests.launchers.test_scripts import GADI
from tests.support.processes import left_in

pytestmark = pytest.mark.full

# These do not report why a job ended; its own status file says only that it was told to end.
SILENT = {"grid-engine"}
READY = ("sh", "-c", "echo ready; exec sleep 1000")


@pytest.fixture(params=FAKED)
def cluster(request, monkeypatch):
    monkeypatch.setattr("launchers.batch.launcher._GRACE_S", 0.2)
    with FakeCluster(request.param) as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        yield cluster


@pytest.fixture
def launcher(cluster):
    site = Site(cluster.kind, cores_per_node=8, poll_s=0.05, walltime_s=3600)
    return BatchLauncher(BATCH_SYSTEMS[cluster.kind].scheduler, site, patience_s=0.5)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    wait_for(lambda: not left_in(tmp_path))


def number_of(job_id: str) -> str:
    return job_id.split(":")[1]


def running(launcher, folder, argv=READY, **options) -> str:
    job = Job(argv, folder, **options)
    job_id = launcher.submit(job)
    wait_for_output(job)
    return job_id


def test_job_waits_for_room_and_may_be_cancelled_meanwhile(launcher, folder):
    (folder / "first").mkdir()
    (folder / "second").mkdir()
    first = running(launcher, folder / "first", resources=Resources(cores=8))
    second = launcher.submit(Job(("true",), folder / "second"))
    assert launcher.poll([first, second])[second].state is JobState.QUEUED
    launcher.cancel(second)
    status = launcher.poll([second])[second]
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.CANCELLED)
    launcher.cancel(first)
    assert launcher.poll([first])[first].reason is EndReason.CANCELLED


@pytest.mark.parametrize("argv", [READY, python(STUBBORN % 1000)], ids=["meek", "stubborn"])
def test_job_that_somebody_else_cancelled(launcher, cluster, folder, argv):
    job_id = running(launcher, folder, argv)
    cluster.cancel(number_of(job_id))
    status = wait_for_end(launcher, job_id)
    if cluster.kind in SILENT:
        assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)
        assert "preempted, or deleted by somebody" in status.message
    else:
        assert (status.state, status.reason) == (JobState.ENDED, EndReason.CANCELLED)
        assert "not by autotune" in status.message


def test_wall_time_ends_a_job(launcher, cluster, folder):
    if cluster.kind in SILENT:
        pytest.skip("its queue says nothing of jobs that have ended")
    cluster.switch("walltime_scale", "0.0001")
    status = wait_for_end(launcher, launcher.submit(Job(READY, folder)))
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.TIMED_OUT)


def test_preempted_job_is_no_failure(launcher, cluster, folder):
    if cluster.kind in SILENT | {"flux"}:
        pytest.skip("its queue says nothing of jobs that have ended, or it preempts none")
    job_id = running(launcher, folder)
    cluster.preempt(number_of(job_id))
    status = wait_for_end(launcher, job_id)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)


def test_node_that_fails_takes_its_job_with_it(launcher, cluster, folder):
    job_id = running(launcher, folder)
    cluster.fail_node(number_of(job_id))
    assert wait_for_end(launcher, job_id).state is JobState.LOST


def test_job_that_is_killed_by_an_administrator_tells_nothing_of_its_configuration(folder, monkeypatch):
    with FakeCluster("pbs") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        launcher = BatchLauncher(BATCH_SYSTEMS["pbs"].scheduler, Site("pbs", poll_s=0.05), patience_s=0.5)
        job_id = running(launcher, folder)
        cluster.kill(number_of(job_id))
        status = wait_for_end(launcher, job_id)
    assert (status.state, status.reason) == (JobState.LOST, None)
    assert "SIGKILL" in status.message


def test_job_that_is_forgotten_while_it_runs_still_tells_its_end(launcher, cluster, folder):
    job_id = running(launcher, folder, ("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.01; done; exit 3"))
    cluster.state.forget(number_of(job_id))
    (folder / "go").touch()
    wait_for((folder / ".autotune-status.json").exists)
    assert launcher.poll([job_id])[job_id].exit_code == 3


def test_job_that_is_forgotten_before_it_started_is_lost(launcher, cluster, folder):
    cluster.switch("held")
    job_id = launcher.submit(Job(("true",), folder))
    cluster.state.forget(number_of(job_id))
    assert wait_for_end(launcher, job_id).state is JobState.LOST


def test_job_whose_folder_was_removed_while_it_was_queued_ends(launcher, cluster, folder):
    cluster.switch("held")
    (folder / "run").mkdir()
    launcher.submit(Job(("true",), folder / "run"))
    shutil.rmtree(folder / "run")
    cluster.switch("held", None)
    wait_for(lambda: not cluster.state.active())


def test_job_that_an_old_squeue_hides_is_deleted_before_it_is_given_up(folder, monkeypatch):
    with FakeCluster("slurm") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        cluster.switch("version", "21.08")
        cluster.switch("held")
        cluster.switch("waits", "reservation deleted")
        launcher = BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, Site("slurm", poll_s=0.05), patience_s=0.3)
        job_id = launcher.submit(Job(("true",), folder))
        assert wait_for_end(launcher, job_id).state is JobState.LOST
        assert [job["state"] for job in cluster.state.jobs()] == ["ended"]


@pytest.mark.parametrize(("version", "tells"), [("22.05", False), ("23.02", True)])
def test_job_of_slurm_knows_its_end_by_itself_since_23_02(version, tells, folder, monkeypatch):
    with FakeCluster("slurm") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        cluster.switch("version", version)
        launcher = BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, Site("slurm", poll_s=0.05, walltime_s=600))
        assert wait_for_end(launcher, launcher.submit(Job(("env",), folder))).exit_code == 0
    lines = (folder / "stdout").read_text().splitlines()
    allocation = SLURM.allocation(dict(line.partition("=")[::2] for line in lines), Path.read_text)
    assert (allocation.ends_at is not None) is tells


def test_scheduler_that_remembers_nothing(launcher, cluster, folder):
    cluster.switch("history", None)
    assert wait_for_end(launcher, launcher.submit(Job(("sh", "-c", "exit 3"), folder))).exit_code == 3
    job_id = running(launcher, folder)
    launcher.cancel(job_id)
    assert launcher.poll([job_id])[job_id].reason is EndReason.CANCELLED
    cluster.switch("held")
    job_id = launcher.submit(Job(("true",), folder))
    launcher.cancel(job_id)
    assert launcher.poll([job_id])[job_id].reason is EndReason.CANCELLED


@pytest.mark.parametrize(("kind", "words"), [("pbs", "Unauthorized Request"), ("slurm", "permission denied")])
def test_jobs_of_somebody_else_are_not_reported_as_cancelled(kind, words, folder, monkeypatch):
    with FakeCluster(kind) as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        cluster.switch("held")
        launcher = BatchLauncher(BATCH_SYSTEMS[kind].scheduler, Site(kind, poll_s=0.05))
        job_id = launcher.submit(Job(("true",), folder))
        cluster.switch("owner")
        launcher.end([job_id])
        assert launcher.poll([job_id])[job_id].state is JobState.QUEUED
        assert words in launcher.trouble


def test_jobs_go_on_while_the_scheduler_is_away(launcher, cluster, folder):
    job_id = running(launcher, folder, ("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.01; done; exit 3"))
    cluster.switch("away")
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    assert launcher.trouble
    (folder / "go").touch()
    assert wait_for_end(launcher, job_id).exit_code == 3
    with pytest.raises(QueueFullError):
        launcher.submit(Job(("true",), folder))


def test_what_the_scheduler_refuses(launcher, cluster, folder):
    cluster.switch("refuse", "queue limit")
    with pytest.raises(QueueFullError):
        launcher.submit(Job(("true",), folder))
    cluster.switch("refuse", "account")
    with pytest.raises(LaunchError) as caught:
        launcher.submit(Job(("true",), folder))
    assert not isinstance(caught.value, QueueFullError)


def test_module_that_is_not_there_ends_the_job(cluster, folder):
    site = Site(cluster.kind, cores_per_node=8, poll_s=0.05, modules=("no/such/module",))
    launcher = BatchLauncher(BATCH_SYSTEMS[cluster.kind].scheduler, site, patience_s=0.2)
    status = wait_for_end(launcher, launcher.submit(Job(("touch", "ran"), folder)))
    assert not (folder / "ran").exists()
    assert status.reason in {EndReason.NOT_STARTED, EndReason.EXITED}
    assert status.exit_code != 0


def test_shells_own_usage_is_not_the_jobs(cluster, folder):
    burn = "import time\nwhile time.process_time() < 1: pass\nblock = b'x' * 100 * 2**20"
    site = Site(cluster.kind, poll_s=0.05, setup=(shlex.join(python(burn)),))
    launcher = BatchLauncher(BATCH_SYSTEMS[cluster.kind].scheduler, site)
    usage = wait_for_end(launcher, launcher.submit(Job(("sleep", "0.3"), folder))).usage
    assert usage.cpu_s < 0.5
    assert 0 < usage.peak_memory_bytes < 50 * 2**20


def test_second_job_in_a_folder_does_not_spoil_the_first(launcher, folder):
    job_id = running(launcher, folder, ("sh", "-c", "echo ready; until [ -e go ]; do sleep 0.01; done; exit 3"))
    script = folder / ".autotune-job.sh"
    assert subprocess.run(["bash", script], check=False).returncode == 1
    assert "another job has claimed this folder" in (folder / QUEUE_LOG).read_text()
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    (folder / "go").touch()
    assert wait_for_end(launcher, job_id).exit_code == 3


def test_ranks_start_with_the_schedulers_environment(launcher, cluster, folder, monkeypatch):
    (folder / "mpirun").write_text('#!/bin/sh\necho "$@"; env\n')
    (folder / "mpirun").chmod(0o755)
    monkeypatch.setenv("OMP_NUM_THREADS", "64")
    environment = {"PATH": f"{folder}:{os.environ['PATH']}"}
    job = Job(("a.out",), folder, environment, MpiStart(2), Resources(cores=4))
    assert wait_for_end(launcher, launcher.submit(job)).exit_code == 0
    lines = (folder / "stdout").read_text().splitlines()
    assert lines[0].startswith("-np 2 ")
    assert lines[0].endswith(" a.out")
    assert "OMP_NUM_THREADS=1" in lines
    prefix = {
        "slurm": "SLURM_NTASKS=2",
        "pbs": "PBS_NODEFILE=",
        "lsf": "LSB_HOSTS=",
        "flux": "FLUX_URI=",
        "grid-engine": "NSLOTS=4",
    }[cluster.kind]
    assert any(line.startswith(prefix) for line in lines)


def test_what_the_setup_of_a_site_makes_of_the_environment_stays(folder, monkeypatch):
    monkeypatch.setenv("LD_LIBRARY_PATH", "/login/lib")
    monkeypatch.setenv("PYTHONPATH", "/login/python")
    setup = ('export LD_LIBRARY_PATH="/site/lib:$LD_LIBRARY_PATH" OMP_NUM_THREADS=7', "unset PYTHONPATH")
    site = Site("slurm", cores_per_node=8, poll_s=0.05, setup=setup)
    argv = ("sh", "-c", 'echo "$LD_LIBRARY_PATH ${PYTHONPATH-none} $OMP_NUM_THREADS"')
    with FakeCluster("slurm") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        launcher = BatchLauncher(SLURM.scheduler, site)
        assert wait_for_end(launcher, launcher.submit(Job(argv, folder, {"OMP_NUM_THREADS": "4"}))).exit_code == 0
    assert (folder / "stdout").read_text() == "/site/lib:/login/lib none 4\n"


@pytest.mark.parametrize("masked", [False, True])
def test_ranks_that_share_a_node_are_not_bound_though_a_mask_keeps_their_job_to_some_cores(folder, monkeypatch, masked):
    (folder / "mpirun").write_text('#!/bin/sh\necho "$@"\n')
    (folder / "mpirun").chmod(0o755)
    # As Slurm's task/affinity does. Open MPI ignores it and would bind the ranks of all jobs to core 0.
    setup = (f"taskset -pc {max(os.sched_getaffinity(0))} $$",) if masked else ()
    site = Site("pbs", cores_per_node=8, poll_s=0.05, setup=setup)
    job = Job(("a.out",), folder, {"PATH": f"{folder}:{os.environ['PATH']}"}, MpiStart(2), Resources(cores=2))
    with FakeCluster("pbs") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        launcher = BatchLauncher(BATCH_SYSTEMS["pbs"].scheduler, site)
        assert wait_for_end(launcher, launcher.submit(job)).exit_code == 0
    assert (folder / "stdout").read_text() == "-np 2 --bind-to none a.out\n"


@pytest.mark.parametrize(
    ("kind", "argv", "code", "says"),
    [
        ("slurm", ("sbatch", "--nosuch", "script"), 255, "sbatch: unrecognized option '--nosuch'"),
        ("slurm", ("sbatch", "missing"), 1, "Unable to open file missing"),
        ("slurm", ("sbatch", "-t", "abc", "script"), 255, "Invalid --time specification"),
        ("slurm", ("sbatch", "-n", "0", "script"), 1, 'Invalid numeric value "0" for --ntasks.'),
        ("slurm", ("sbatch", "-n", "99", "script"), 1, "More processors requested than permitted"),
        ("slurm", ("squeue", "--noheader", "--states=all", "--format=%i", "--jobs=9"), 1, "Invalid job id specified"),
        ("slurm", ("squeue", "--frob"), 1, "unrecognized option"),
        ("slurm", ("scancel", "abc"), 1, "Invalid job id abc"),
        ("slurm", ("scancel", "9"), 0, ""),
        ("pbs", ("qsub", "-B", "script"), 2, "invalid option -- 'B'"),
        ("pbs", ("qsub", "-l", "storage=a", "script"), 187, "Unknown resource Resource_List.storage"),
        ("pbs", ("qsub", "-l", "select=1", "-l", "ncpus=1", "script"), 5, "cannot be used with"),
        ("pbs", ("qsub", "-l", "qos=high", "script"), 187, "Unknown resource Resource_List.qos"),
        ("pbs", ("qsub", "-l", "walltime=soon", "script"), 166, "Illegal attribute or resource value"),
        ("pbs", ("qsub", "-N", "1 a", "script"), 2, "illegal -N value"),
        ("pbs", ("qstat", "-f", "9.pbshost"), 153, "Unknown Job Id 9.pbshost"),
        ("pbs", ("qdel", "9.pbshost"), 153, "Unknown Job Id 9.pbshost"),
        ("grid-engine", ("qsub", "missing"), 14, "error opening missing: No such file or directory"),
        ("grid-engine", ("qsub", "-zz", "script"), 2, 'invalid option argument "-zz"'),
        ("grid-engine", ("qsub", "-cwd", "-N", "1x", "script"), 1, "cannot start with a digit"),
        ("grid-engine", ("qsub", "-cwd", "-l", "nosuch=1", "script"), 1, 'unknown resource "nosuch"'),
        ("grid-engine", ("qsub", "-cwd", "-pe", "nosuch", "2", "script"), 1, '"nosuch" does not exist'),
        ("lsf", ("bsub", "-frob"), 255, "this stand-in does not know -frob"),
        ("lsf", ("bkill", "9"), 255, "No matching job found"),
        ("flux", ("flux", "frob"), 1, "is not a flux command"),
        ("flux", ("flux", "batch", "--frob", "script"), 2, "unrecognized arguments"),
    ],
)
def test_stand_in_refuses_what_it_does_not_know(kind, argv, code, says, tmp_path):
    (tmp_path / "script").write_text("#!/bin/sh\n")
    with FakeCluster(kind) as cluster:
        done = subprocess.run(
            [cluster.bin / argv[0], *argv[1:]], cwd=tmp_path, capture_output=True, text=True, check=False, input=""
        )
        assert (done.returncode, says in done.stderr) == (code, True), done.stderr
        assert cluster.state.jobs() == []


@pytest.mark.parametrize(
    ("kind", "line"),
    [
        ("slurm", "#SBATCH --frob=1"),
        ("pbs", "#PBS -l wd"),
        ("grid-engine", "#$ -zz"),
        ("lsf", "#BSUB -frob"),
        ("flux", "#flux: --frob"),
    ],
)
def test_stand_in_refuses_directives_that_it_does_not_know(kind, line, tmp_path):
    (tmp_path / "script").write_text(f"#!/bin/sh\n{line}\n")
    argv = {
        "slurm": ("sbatch", "script"),
        "pbs": ("qsub", "script"),
        "grid-engine": ("qsub", "script"),
        "lsf": ("bsub",),
        "flux": ("flux", "batch", "script"),
    }
    with FakeCluster(kind) as cluster:
        program, *words = argv[kind]
        with (tmp_path / "script").open() as script:
            done = subprocess.run(
                [cluster.bin / program, *words], cwd=tmp_path, stdin=script, capture_output=True, check=False
            )
        assert done.returncode != 0
        assert cluster.state.jobs() == []


def test_stand_in_leaves_nothing_behind(tmp_path):
    with FakeCluster("slurm") as cluster:
        (tmp_path / "script").write_text(f"#!/bin/sh\n{shlex.join(python(STUBBORN % 1000))}\n")
        subprocess.run([cluster.bin / "sbatch", "script"], cwd=tmp_path, capture_output=True, check=True)
        wait_for((tmp_path / "grandchild").exists)
        assert left_in(tmp_path)
    assert left_in(tmp_path) == []
    assert not cluster.bin.exists()


def test_gadis_own_form_is_one_that_gadi_takes(folder, monkeypatch):
    site = Site(**(vars(GADI) | {"modules": (), "python": Site("pbs").python, "poll_s": 0.05}))
    job = Job(("sh", "-c", "echo $NCPUS"), folder, resources=Resources(cores=2))
    with FakeCluster("pbs") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        cluster.switch("resources", "wd storage")
        launcher = BatchLauncher(BATCH_SYSTEMS["pbs"].scheduler, site)
        assert wait_for_end(launcher, launcher.submit(job)).exit_code == 0
    assert ((folder / "stdout").read_text(), (folder / STDERR).read_text()) == ("2\n", "")
