"""The shared memory of a killed job is removed; that of other programs stays, whenever it was made."""

import ctypes
import mmap
import os
import secrets
import signal
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from launchers import EndReason, Job, JobState, local
from launchers.batch.job_files import SCRIPT_FILE
from launchers.local import LocalLauncher
from launchers.run import run
from launchers.shared_memory import SHARED_MEMORY_FILE, JobSharedMemory, find_abandoned
from tests.launchers.jobs import python, wait_for, wait_for_end
from tests.support.processes import left_in

SHARED_MEMORY = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not os.access(SHARED_MEMORY, os.W_OK), reason="no /dev/shm here")

MAPS = """
import ctypes, mmap, os, sys, time
fd = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT, 0o600)
os.ftruncate(fd, 4096)
memory = mmap.mmap(fd, 4096)
os.close(fd)
open("segment", "w").write(str(ctypes.CDLL(None).shmget(0, 4096, 0o600 | 0o1000)))
open("ready", "w").close()
"""


@pytest.fixture
def name():
    path = SHARED_MEMORY / f"autotune-test-{secrets.token_hex(4)}"
    yield path
    for left in SHARED_MEMORY.glob(f"{path.name}*"):
        left.unlink()


def job(folder: Path, name: Path, then: str) -> Job:
    return Job(python(f"import sys; sys.argv[1:] = [{str(name)!r}]\n{MAPS}\n{then}"), folder)


def segments() -> list[int]:
    return [int(line.split()[1]) for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]


def remove_segment(folder: Path) -> None:
    ctypes.CDLL(None).shmctl(int((folder / "segment").read_text()), 0, None)


@pytest.mark.slow
def test_shared_memory_of_an_ended_job_is_removed(tmp_path, name):
    launcher = LocalLauncher()
    job_id = launcher.submit(job(tmp_path, name, "time.sleep(1000)"))
    wait_for((tmp_path / "ready").exists)
    launcher.cancel(job_id)
    assert wait_for_end(launcher, job_id).reason is EndReason.CANCELLED
    assert not name.exists()
    assert int((tmp_path / "segment").read_text()) not in segments()


@pytest.mark.slow
@pytest.mark.parametrize("then", ["time.sleep(1000)", "os.fork() or (os.setsid(), time.sleep(1000))"])
def test_shared_memory_of_a_job_whose_supervisor_was_killed_is_removed(tmp_path, name, then):
    launcher = LocalLauncher()
    job_id = launcher.submit(job(tmp_path, name, f"{then}; time.sleep(1000)"))
    wait_for(lambda: all(recorded(tmp_path)))
    os.kill(int(job_id.split(":")[1]), signal.SIGKILL)
    assert wait_for_end(launcher, job_id).state is JobState.LOST
    assert not name.exists()
    assert int((tmp_path / "segment").read_text()) not in segments()


@pytest.mark.slow
def test_nothing_stays_of_a_batch_job_whose_supervisor_was_killed(launcher, tmp_path, name):
    launcher.submit(job(tmp_path, name, "os.fork() or (os.setsid(), time.sleep(1000)); time.sleep(1000)"))
    with subprocess.Popen(["bash", tmp_path / SCRIPT_FILE]) as script:
        wait_for(lambda: all(recorded(tmp_path)))
        (supervisor,) = psutil.Process(script.pid).children()
        supervisor.kill()
    # The batch system sees how the supervisor ended.
    assert script.returncode == -signal.SIGKILL
    assert left_in(tmp_path) == []
    assert not name.exists()
    assert int((tmp_path / "segment").read_text()) not in segments()


def test_shared_memory_that_was_not_seen_before_the_supervisor_was_killed_is_found_in_what_is_left(tmp_path, name):
    launcher = LocalLauncher()
    child = "(os.setsid(), open('forked', 'w').close(), time.sleep(1000))"
    job_id = launcher.submit(job(tmp_path, name, f"os.fork() or {child}; time.sleep(1000)"))
    supervisor = int(job_id.split(":")[1])
    os.kill(supervisor, signal.SIGSTOP)
    wait_for((tmp_path / "forked").exists)
    os.kill(supervisor, signal.SIGKILL)
    assert wait_for_end(launcher, job_id).state is JobState.LOST
    assert not name.exists()
    remove_segment(tmp_path)


# As the process that starts a server does, which is killed before it removes what was left.
KILLS = f"""
import os, signal, sys
sys.path.insert(0, {os.fspath(Path(__file__).parents[2])!r})
from launchers.shared_memory import JobSharedMemory
memory = JobSharedMemory()
memory.add_to(os.curdir)
supervisor, (read_end, write_end) = os.getppid(), os.pipe()
os.kill(supervisor, signal.SIGSTOP)  # so that it sees nothing of the child
child = os.fork()
if child == 0:
    exec(sys.argv[2])
    os.write(write_end, b"1")
    time.sleep(1000)
os.read(read_end, 1)
memory.note([child])
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
os.kill(supervisor, signal.SIGCONT)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_shared_memory_of_what_a_process_of_the_job_has_killed_is_removed(tmp_path, name):
    words = python(f"import sys; sys.argv[1:] = [{str(name)!r}, {MAPS!r}]\n{KILLS}")
    assert run(LocalLauncher(), Job(words, tmp_path)).exit_code == -signal.SIGKILL
    assert (tmp_path / "ready").exists()
    assert not name.exists()
    assert int((tmp_path / "segment").read_text()) not in segments()


def test_shared_memory_that_a_process_notes_until_it_is_killed_is_removed(tmp_path, name, monkeypatch):
    JobSharedMemory().keep_in(os.fspath(tmp_path))
    starter = JobSharedMemory()  # of the process that starts a server
    starter.add_to(os.fspath(tmp_path))

    def kill(_):
        descriptor = os.open(name, os.O_RDWR | os.O_CREAT, 0o600)
        os.ftruncate(descriptor, 4096)
        with mmap.mmap(descriptor, 4096):
            starter.note([os.getpid()])
        os.close(descriptor)

    monkeypatch.setattr(local, "kill_marked", kill)
    local._kill({f"token:{tmp_path}"})
    assert not name.exists()


def test_a_line_of_the_record_that_a_full_disk_has_cut_spoils_no_other(tmp_path):
    lines = ['{"names": [], "segments": []}', '{"files": {"cut": [1, ', '{"files": {"kept": [1, 2]}, "made": []}']
    (tmp_path / SHARED_MEMORY_FILE).write_text("\n".join(lines))
    assert recorded(tmp_path) == ({"kept": (1, 2)}, set())


def recorded(folder: Path) -> tuple[Any, Any]:
    """Return the files and segments that the job was seen to make."""
    memory = JobSharedMemory.read(folder)
    return (memory._files, memory._made) if memory is not None else ({}, set())


def test_shared_memory_of_a_successful_job_stays(tmp_path, name):
    assert run(LocalLauncher(), job(tmp_path, name, "time.sleep(0.5)")).exit_code == 0
    assert name.exists()
    assert str(name) in find_abandoned()[0]
    assert int((tmp_path / "segment").read_text()) in segments()
    remove_segment(tmp_path)


@pytest.mark.slow
def test_shared_memory_of_others_stays(tmp_path, name):
    before, meanwhile = (name.with_name(f"{name.name}-{word}") for word in ("before", "meanwhile"))
    before.touch(mode=0o600)
    launcher = LocalLauncher()
    folders = [tmp_path / "killed", tmp_path / "beside"]
    for folder in folders:
        folder.mkdir()
    # The job maps memory that existed before; the other job maps memory that the first one made.
    both = f"sys.argv[1:] = [{str(before)!r}]\n{MAPS}\ntime.sleep(60)"
    killed = launcher.submit(job(folders[0], name, both))
    wait_for((folders[0] / "ready").exists)
    beside = launcher.submit(job(folders[1], name, "time.sleep(60)"))
    wait_for((folders[1] / "ready").exists)
    meanwhile.touch(mode=0o600)
    launcher.cancel(killed)
    wait_for_end(launcher, killed)
    assert name.exists()
    assert before.exists()
    assert meanwhile.exists()
    assert int((folders[1] / "segment").read_text()) in segments()
    launcher.cancel(beside)
    wait_for_end(launcher, beside)
    # The first job had made it; using it last does not make a job its owner.
    assert [path.exists() for path in (before, meanwhile)] == [True, True]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_death_on_a_full_file_system_is_reported_as_such(tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "none", full], check=False, capture_output=True)
    if mounted.returncode:
        pytest.skip(mounted.stderr.decode())
    try:
        dies = "memory = mmap.mmap(os.open(sys.argv[1], os.O_RDWR), 1 << 20)\nmemory[:] = bytes(1 << 20)"
        dies = f"os.truncate(sys.argv[1], 1 << 20)\n{dies}"
        program = job(tmp_path, full / "segment", dies)
        status = run(LocalLauncher(), replace(program, environment={"TMPDIR": str(full)}))
    finally:
        subprocess.run(["umount", full], check=True)
    remove_segment(tmp_path)
    assert status.exit_code == -signal.SIGBUS
    assert f"no room is left in {full}" in status.message
