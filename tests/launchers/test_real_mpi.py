"""Jobs with ranks, started by the MPI of this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import STDERR, STDOUT, EndReason, Job, JobState, MpiStart, Resources
from launchers.detect import detect
from launchers.local import LocalLauncher
from launchers.process_tree import descendants
from launchers.run import run
from tests.launchers.jobs import kill, python, supervisor_of, wait_for, wait_for_end, wait_for_output
from tests.support.processes import left_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(detect() is None, reason="this machine has no mpirun, mpiexec or srun"),
]

CORES = sorted(os.sched_getaffinity(0))
SHOW = "import os; print(sorted(os.sched_getaffinity(0)), flush=True)"
# Waits for a file, so that the jobs really run at the same time.
SHOW_AND_WAIT = f"""{SHOW}
import pathlib, time
while not pathlib.Path('go').exists(): time.sleep(0.01)
"""


@pytest.fixture
def launcher():
    return LocalLauncher(detect(), grace_s=1.0)


@pytest.fixture
def folder(tmp_path):
    yield tmp_path
    assert left_in(tmp_path) == []


def lines(folder: Path) -> list[str]:
    return (folder / STDOUT).read_text().splitlines()


def test_ranks_are_started(launcher, folder):
    status = run(launcher, Job(("sh", "-c", "echo rank"), folder, mpi=MpiStart(2), resources=Resources(cores=2)))
    assert status.exit_code == 0, (folder / STDERR).read_text()
    assert lines(folder) == ["rank", "rank"]


def test_exit_code_of_a_rank_is_reported(launcher, folder):
    assert run(launcher, Job(("sh", "-c", "exit 3"), folder, mpi=MpiStart(1))).exit_code == 3


def test_more_ranks_than_cores_run(launcher, folder):
    cpu = CORES[-1]
    status = run(launcher, Job(python(SHOW), folder, mpi=MpiStart(3), resources=Resources(cpus=(cpu,))))
    assert status.exit_code == 0, (folder / STDERR).read_text()
    assert lines(folder) == [f"[{cpu}]"] * 3


@pytest.mark.parametrize("bind_to", [None, "none", "core"])
def test_jobs_at_the_same_time_share_no_core(launcher, folder, bind_to):
    jobs = {}
    for cpu in CORES:
        place = folder / str(cpu)
        place.mkdir()
        start = MpiStart(1, bind_to=bind_to)
        jobs[cpu] = Job(python(SHOW_AND_WAIT), place, mpi=start, resources=Resources(cpus=(cpu,)))
    ids = {cpu: launcher.submit(job) for cpu, job in jobs.items()}
    for cpu, job in jobs.items():
        wait_for_output(job, "]")
        assert lines(job.folder) == [f"[{cpu}]"]
    for cpu, job in jobs.items():
        (job.folder / "go").touch()
        assert wait_for_end(launcher, ids[cpu]).exit_code == 0


def test_ranks_of_a_job_with_several_cores_may_use_all_of_them(launcher, folder):
    run(launcher, Job(python(SHOW), folder, mpi=MpiStart(1), resources=Resources(cpus=tuple(CORES))))
    assert lines(folder) == [str(CORES)]


def test_usage_is_that_of_the_ranks(launcher, folder):
    code = "import time\nblock = bytearray(b'x') * (60 * 2**20)\nwhile time.process_time() < 0.5: pass\ntime.sleep(1)"
    job = Job(python(code), folder, mpi=MpiStart(2), resources=Resources(cores=2))
    usage = run(launcher, job).usage
    assert 1.0 <= usage.cpu_s < 5.0
    assert 120 * 2**20 <= usage.peak_memory_bytes <= 200 * 2**20


def test_cancelling_ends_the_ranks(launcher, folder):
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN)"
    code = f"{deaf}; print('ready', flush=True); time.sleep(1000)"
    job = Job(python(code), folder, mpi=MpiStart(2), resources=Resources(cores=2))
    job_id = launcher.submit(job)
    wait_for(lambda: (folder / STDOUT).read_text().count("ready") == 2)
    launcher.cancel(job_id)
    assert left_in(folder) == []
    assert launcher.poll([job_id])[job_id].reason is EndReason.CANCELLED


def ranks_that_wait(launcher: LocalLauncher, folder: Path) -> str:
    code = "import time; print('ready', flush=True); time.sleep(1000)"
    job_id = launcher.submit(Job(python(code), folder, mpi=MpiStart(2), resources=Resources(cores=2)))
    wait_for(lambda: (folder / STDOUT).read_text().count("ready") == 2)
    return job_id


def test_killed_start_command_leaves_no_ranks(launcher, folder):
    job_id = ranks_that_wait(launcher, folder)
    start_command = [pid for pid in descendants(supervisor_of(job_id)) if b"mpi" in _program(pid)]
    kill(start_command[0])
    status = wait_for_end(launcher, job_id)
    assert (status.state, status.exit_code) == (JobState.ENDED, -9)
    assert left_in(folder) == []


def test_killed_supervisor_leaves_no_ranks(launcher, folder):
    job_id = ranks_that_wait(launcher, folder)
    kill(supervisor_of(job_id))
    assert wait_for_end(launcher, job_id).state is JobState.LOST
    assert left_in(folder) == []


def _program(pid: int) -> bytes:
    return Path(f"/proc/{pid}/comm").read_bytes()


# An MPI program without a compiler: once both ranks have passed the barrier they share memory.
RANK = """
import ctypes, time
mpi = ctypes.CDLL('libmpi.so.40', mode=ctypes.RTLD_GLOBAL)
mpi.MPI_Init(None, None)
mpi.MPI_Barrier(ctypes.byref(ctypes.c_char.in_dll(mpi, 'ompi_mpi_comm_world')))
print('ready', flush=True)
time.sleep(1000)
"""
SUBMIT = """
import json, sys, time
from pathlib import Path
from launchers import Job, MpiStart, Resources
from launchers.detect import detect
from launchers.local import LocalLauncher
argv, folder = json.loads(sys.argv[1])
LocalLauncher(detect()).submit(Job(tuple(argv), Path(folder), mpi=MpiStart(2), resources=Resources(cores=2)))
time.sleep(1000)
"""


LOAD = [sys.executable, "-c", "import ctypes; ctypes.CDLL('libmpi.so.40')"]
OPEN_MPI_4 = subprocess.run(LOAD, capture_output=True, check=False).returncode == 0


def segments() -> set[str]:
    """Return the existing segments of shared memory, including those of other programs."""
    return {path.name for path in Path("/dev/shm").glob("vader_segment.*")}


@pytest.mark.skipif(not OPEN_MPI_4, reason="the library of Open MPI 4 is not there")
def test_shared_memory_of_ranks_is_removed_with_the_launching_process(folder):
    before = segments()
    words = json.dumps([python(RANK), os.fspath(folder)])
    with subprocess.Popen([sys.executable, "-c", SUBMIT, words], cwd=Path(__file__).parents[2]) as submitter:
        wait_for(lambda: (folder / STDOUT).exists() and (folder / STDOUT).read_text().count("ready") == 2)
        maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in left_in(folder))
        own = {name for name in segments() - before if name in maps}
        submitter.kill()
    wait_for(lambda: left_in(folder) == [])
    assert len(own) == 2
    assert not own & segments()


@pytest.mark.skipif(not OPEN_MPI_4, reason="the library of Open MPI 4 is not there")
def test_shared_memory_of_ranks_is_removed_when_their_start_command_is_killed(launcher, folder):
    before = segments()
    job_id = launcher.submit(Job(python(RANK), folder, mpi=MpiStart(2), resources=Resources(cores=2)))
    wait_for(lambda: (folder / STDOUT).read_text().count("ready") == 2)
    pids = descendants(supervisor_of(job_id))
    maps = "".join(Path(f"/proc/{pid}/maps").read_text() for pid in pids)
    own = {name for name in segments() - before if name in maps}
    kill(next(pid for pid in pids if b"mpi" in _program(pid)))
    wait_for_end(launcher, job_id)
    assert len(own) == 2
    assert not own & segments()
