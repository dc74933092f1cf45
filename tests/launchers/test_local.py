"""Jobs on this machine: their supervisors, and what happens when those are killed."""

import os
import pickle
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from launchers import STDOUT, EndReason, Job, JobState, LaunchError, MpiStart, Resources
from launchers.job import Surroundings
from launchers.local import LocalLauncher, end_jobs_below, online_cpus
from launchers.mpi import MpiFlavour
from launchers.mpi.mpich import MPICH
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.process_tree import descendants, memory_bytes, start_time
from launchers.processes import JOB_VARIABLE, read_mark
from launchers.run import run
from tests.launchers.jobs import (
    STUBBORN,
    kill,
    python,
    supervisor_of,
    supervisors_in,
    wait_for,
    wait_for_end,
    wait_for_output,
)
from tests.support.processes import left_in

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    assert left_in(tmp_path) == []
    wait_for(lambda: not supervisors_in(tmp_path))


def stubborn_job(folder: Path) -> Job:
    return Job(python(STUBBORN % 1000), folder)


def test_killed_supervisor_leaves_a_lost_job_and_no_process(folder):
    launcher = LocalLauncher()
    job = stubborn_job(folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    kill(supervisor_of(job_id))
    status = wait_for_end(launcher, job_id)
    assert status.state is JobState.LOST
    assert "left no status" in status.message
    assert left_in(folder) == []


def test_cancelling_a_job_without_supervisor_ends_the_rest(folder):
    launcher = LocalLauncher()
    job = stubborn_job(folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    kill(supervisor_of(job_id))
    launcher.cancel(job_id)
    assert left_in(folder) == []


def test_stopped_supervisor_does_not_stop_a_cancel(folder, monkeypatch):
    monkeypatch.setattr("launchers.local._PATIENCE_S", 0.5)
    launcher = LocalLauncher(grace_s=0.1)
    job = stubborn_job(folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    os.kill(supervisor_of(job_id), 19)
    launcher.cancel(job_id)
    assert left_in(folder) == []


def test_warning_before_a_suspension_changes_nothing_and_one_before_the_end_lets_the_job_end_well(folder):
    launcher = LocalLauncher()
    job = Job(("sh", "-c", "trap 'echo saved; exit 7' TERM; echo ready; while :; do sleep 0.01; done"), folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    os.kill(supervisor_of(job_id), signal.SIGUSR1)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    os.kill(supervisor_of(job_id), signal.SIGUSR2)
    status = wait_for_end(launcher, job_id)
    assert (status.reason, status.exit_code) == (EndReason.CANCELLED, 7)


def submit_elsewhere(folders: list[Path]) -> "subprocess.Popen[bytes]":
    """Submit a stubborn job in each folder from another process."""
    code = (
        "import sys, time; from pathlib import Path; from launchers import Job\n"
        "from launchers.local import LocalLauncher\n"
        f"for folder in sys.argv[1:]: LocalLauncher().submit(Job({python(STUBBORN % 1000)!r}, Path(folder)))\n"
        "time.sleep(1000)"
    )
    return subprocess.Popen([sys.executable, "-c", code, *folders], cwd=REPOSITORY)


def test_end_jobs_below_ends_jobs_of_a_killed_study(folder):
    runs = [folder / name for name in ("a", "it's\nb", "c")]
    other = folder / "other"
    for place in (*runs, other):
        place.mkdir()
    mine = LocalLauncher()
    spared = stubborn_job(other)
    spared_id = mine.submit(spared)
    with submit_elsewhere(runs) as process:
        for place in runs:
            wait_for_output(replace(spared, folder=place))
        pairs = [_waiting_and_supervisor(place) for place in runs]
        # In the worst case all processes that could clean up are killed first, each before the process whose end it
        # would notice.
        for waiting, supervisor in pairs[:2]:
            os.kill(supervisor, signal.SIGSTOP)
            kill(waiting)
            kill(supervisor)
        kill(process.pid)
    assert sum(end_jobs_below(place) for place in runs) >= 2
    assert [left_in(place) for place in runs] == [[], [], []]
    assert end_jobs_below(runs[0]) == 0
    assert mine.poll([spared_id])[spared_id].state is JobState.RUNNING
    assert end_jobs_below(folder) == 1
    assert mine.poll([spared_id])[spared_id].reason is EndReason.CANCELLED


def test_nothing_of_a_job_stays_when_its_submitter_and_its_supervisor_are_killed(folder):
    with submit_elsewhere([folder]) as process:
        wait_for_output(Job((), folder))
        _, supervisor = _waiting_and_supervisor(folder)
        kill(supervisor)
        kill(process.pid)
    wait_for(lambda: not left_in(folder))
    wait_for(lambda: not supervisors_in(folder))


def test_end_jobs_below_spares_other_folders(folder):
    for name in ("run", "run-2"):
        (folder / name).mkdir()
    launcher = LocalLauncher()
    job = stubborn_job(folder / "run-2")
    job_id = launcher.submit(job)
    wait_for_output(job)
    assert end_jobs_below(folder / "run") == 0
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    launcher.cancel(job_id)


def _waiting_and_supervisor(folder: Path) -> list[int]:
    """Return the supervisor of the job in `folder`, after the process that waits for its end."""
    found = [pid for pid in supervisors_in(folder) if b"supervisor.py" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert len(found) == 2
    return sorted(found, key=lambda pid: len(descendants(pid)), reverse=True)


def test_forked_child_of_the_launcher_does_not_keep_jobs_alive(folder):
    code = (
        "import os, sys, time; from pathlib import Path; from launchers import Job\n"
        "from launchers.local import LocalLauncher\n"
        f"LocalLauncher().submit(Job({python(STUBBORN % 1000)!r}, Path(sys.argv[1])))\n"
        "child = os.fork()\n"  # it has a copy of the pipe that tells the supervisor that the process lives
        "Path(sys.argv[1], 'child').write_text(str(child)) if child else None\n"
        "time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder], cwd=REPOSITORY) as process:
        wait_for(lambda: (folder / "child").exists() and (folder / "child").read_text())
        wait_for_output(Job((), folder))
        process.kill()
    try:
        wait_for(lambda: not left_in(folder))
    finally:
        kill(int((folder / "child").read_text()))


def test_guard_kills_what_a_killed_process_started(folder):
    code = (
        "import subprocess, sys, time; from launchers.local import end_with_this_process\n"
        "end_with_this_process(); end_with_this_process()\n"
        f"subprocess.Popen({python(STUBBORN % 1000)!r}, cwd=sys.argv[1], stdout=open(sys.argv[1] + '/stdout', 'w'))\n"
        "time.sleep(1000)"
    )
    with subprocess.Popen([sys.executable, "-c", code, folder], cwd=REPOSITORY) as process:
        wait_for_output(Job((), folder))
        process.kill()
    wait_for(lambda: not left_in(folder))


def test_job_that_cannot_write_its_output_is_reported(folder):
    (folder / STDOUT).symlink_to("/dev/full")
    status = run(LocalLauncher(), Job(("sh", "-c", "echo text"), folder))
    assert status.reason is EndReason.EXITED
    assert status.exit_code


def test_lines_are_read_from_the_progress_file(tmp_path):
    lines = []
    job = Job(("sh", "-c", "echo step 1; echo step 2 >md.log; echo step 3 >&2"), tmp_path, progress_file="md.log")
    run(LocalLauncher(), job, lambda new: bool(lines.extend(new)))
    assert lines == ["step 2"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount")
def test_end_is_recorded_on_a_full_disk(folder):
    disk = folder / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "none", disk], check=False, capture_output=True
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        status = run(LocalLauncher(), Job(("sh", "-c", "cat /dev/zero; exit 5"), disk))
        assert os.statvfs(disk).f_bfree == 0
        assert (status.state, status.exit_code) == (JobState.ENDED, 5)
    finally:
        wait_for(lambda: not supervisors_in(disk))
        subprocess.run(["umount", disk], check=True)


def test_removed_folder_is_a_lost_job(folder):
    place = folder / "place"
    place.mkdir()
    job_id = LocalLauncher().submit(Job(("sh", "-c", "rm -r ../place"), place))
    status = wait_for_end(LocalLauncher(), job_id)
    assert status.state is JobState.LOST
    assert "check whether the program removes the folder" in status.message
    # Without the folder nothing says when the supervisor has ended.
    wait_for(lambda: left_in(folder) == [])


def test_surroundings_of_the_caller_replace_the_folder_and_the_few_variables(folder, monkeypatch):
    monkeypatch.setenv("UNKNOWN_TO_US", "kept")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    elsewhere, own = folder / "elsewhere", folder / "own"
    for each in (elsewhere, own):
        each.mkdir()
    (elsewhere / "given").write_text("typed")
    (elsewhere / "program").write_text('#!/bin/sh\necho "$(cat) $UNKNOWN_TO_US $OMP_NUM_THREADS-" > made\npwd\n')
    (elsewhere / "program").chmod(0o755)
    job = Job(("./program",), own, surroundings=Surroundings(elsewhere, elsewhere / "given"))
    assert run(LocalLauncher(), job).exit_code == 0
    assert (elsewhere / "made").read_text() == "typed kept -\n"
    assert (own / STDOUT).read_text() == f"{elsewhere}\n"


def test_two_jobs_cannot_share_a_folder(folder):
    launcher = LocalLauncher(grace_s=0.1)
    job = stubborn_job(folder)
    job_id = launcher.submit(job)
    wait_for_output(job)
    with pytest.raises(LaunchError, match="another job is running in this folder"):
        launcher.submit(job)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    launcher.cancel(job_id)


def test_missing_cores_are_reported(folder):
    with pytest.raises(LaunchError, match=r"the cores \[4000\] cannot be used here; usable are"):
        LocalLauncher().submit(Job(("true",), folder, resources=Resources(cpus=(4000,))))


def test_ranks_need_a_start_command(folder):
    with pytest.raises(LaunchError, match=r"needs MPI.*module load"):
        LocalLauncher().submit(Job(("true",), folder, mpi=MpiStart(2)))


def test_one_machine_is_one_node(folder):
    with pytest.raises(LaunchError, match="2 nodes"):
        LocalLauncher().submit(Job(("true",), folder, resources=Resources(nodes=2)))
    on_two = Job(("true",), folder, mpi=MpiStart(4), resources=Resources(4, nodes=2, cpus=(0, 1), hosts=("a", "b")))
    command = LocalLauncher(MpiFlavour(MPICH, (4,), "mpiexec")).command(on_two)
    assert command == ["mpiexec", "-n", "4", "-hosts", "a,b", "-ppn", "2", "true"]


def test_ranks_run_the_program_on_the_search_path(folder):
    for name in ("first", "mpi"):
        (folder / name).mkdir()
        (folder / name / "mine").symlink_to("/bin/true")
    environment = {"PATH": f"{folder}/first:{folder}/mpi:/usr/bin:/bin"}
    ranks = Job(("mine", "x"), folder, environment=environment, mpi=MpiStart(1))
    # When called by its full path, Open MPI searches its own folder first.
    command = LocalLauncher(MpiFlavour(OPEN_MPI, (4,), f"{folder}/mpi/mpirun")).command(ranks)
    assert command[-2:] == [f"{folder}/first/mine", "x"]
    elsewhere = LocalLauncher(MpiFlavour(OPEN_MPI, (4,), "/nowhere/mpirun")).command(ranks)
    assert elsewhere[-2:] == ["mine", "x"]
    assert LocalLauncher(MpiFlavour(OPEN_MPI, (4,))).command(ranks)[-2:] == ["mine", "x"]


@pytest.mark.parametrize("job_id", ["", "7.pbshost", "local:x:y:z", "local:1"])
def test_ids_of_others_are_refused(job_id):
    with pytest.raises(ValueError, match="not the id of a local job"):
        LocalLauncher().poll([job_id])


def test_reused_process_id_is_not_the_job(folder):
    job_id = f"local:{os.getpid()}:token:{folder}"
    assert LocalLauncher().poll([job_id])[job_id].state is JobState.LOST


def test_launcher_travels_to_workers():
    launcher = LocalLauncher(MpiFlavour(MPICH, (4, 0)), grace_s=1.0)
    assert pickle.loads(pickle.dumps(launcher)) == launcher


def test_preview_is_a_line_for_a_shell(folder):
    place = folder / "it's here"
    place.mkdir()
    job = Job(("printf", "%s %s", "$A", "b c"), place, environment={"A": "x y"})
    shown = LocalLauncher().preview(job)
    assert shown.startswith(f"cd '{folder}/it'\"'\"'s here' && env 'A=x y' OMP_NUM_THREADS=1 printf")
    assert subprocess.run(["sh", "-c", shown], check=True, capture_output=True, text=True).stdout == "$A b c"


def test_mark_of_a_process_is_the_one_it_was_started_with(folder):
    job_id = LocalLauncher().submit(stubborn_job(folder))
    assert read_mark(supervisor_of(job_id), JOB_VARIABLE) == job_id.split(":", 2)[2]
    LocalLauncher(grace_s=0.1).cancel(job_id)
    assert read_mark(2**22 + 1, JOB_VARIABLE) is None


@pytest.mark.parametrize("lists_children", [True, False])
def test_descendants_are_found_on_any_kernel(monkeypatch, lists_children):
    monkeypatch.setattr("launchers.process_tree._LISTS_CHILDREN", lists_children)
    with subprocess.Popen(["sh", "-c", "sleep 1000 & echo $!; wait"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = int(process.stdout.readline())
        assert {process.pid, child} <= set(descendants(os.getpid()))
        assert descendants(process.pid) == [child]
        assert memory_bytes([process.pid, child]) > 0
        process.kill()
        kill(child)
    assert start_time(process.pid) is None
    assert memory_bytes([process.pid]) == 0


def test_machines_cores_include_those_that_can_be_used():
    assert online_cpus() >= os.sched_getaffinity(0)
