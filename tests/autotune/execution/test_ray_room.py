"""The room that Ray needs is there before it starts, or a message names what lacks."""

import os
import resource
import subprocess
import sys

import pytest

from autotune.errors import CannotRunHereError, ExitCode
from autotune.execution import ray_room
from autotune.execution.ray_access import ray_start_errors
from autotune.execution.ray_room import SHARED_MEMORY, check_room

MIB = 2**20


@pytest.fixture
def free(tmp_path, monkeypatch):
    """Provide the free bytes of the two folders, to be changed."""
    bytes_free = {tmp_path: 100 * MIB, SHARED_MEMORY: 100 * MIB}
    monkeypatch.setattr(ray_room, "_free_bytes", bytes_free.__getitem__)
    return bytes_free


def test_the_object_store_is_in_shared_memory_if_it_fits(free, tmp_path, monkeypatch):
    assert check_room(tmp_path) == SHARED_MEMORY
    free[SHARED_MEMORY] = 79 * MIB
    assert check_room(tmp_path) == tmp_path
    free[SHARED_MEMORY] = 100 * MIB
    monkeypatch.setattr(os, "access", lambda path, mode: path != SHARED_MEMORY)
    assert check_room(tmp_path) == tmp_path


def test_a_full_disk_is_named(free, tmp_path):
    free[tmp_path] = 3 * MIB
    with pytest.raises(CannotRunHereError, match=f"needs 4 MiB in {tmp_path}, which has 3 MiB free: free some space"):
        check_room(tmp_path)


@pytest.mark.parametrize(("is_writable", "why"), [(True, "has 0 MiB free"), (False, "is not writable")])
def test_shared_memory_that_lacks_is_named(free, tmp_path, monkeypatch, is_writable, why):
    free.update({tmp_path: 83 * MIB, SHARED_MEMORY: 1000})
    monkeypatch.setattr(os, "access", lambda *_: is_writable)
    said = f"needs 84 MiB in {tmp_path}, which has 83 MiB free and /dev/shm {why}, so that the 80 MiB"
    with pytest.raises(CannotRunHereError, match=said):
        check_room(tmp_path)


def test_a_limit_of_address_space_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (900_000 * 1024, resource.RLIM_INFINITY))
    with pytest.raises(CannotRunHereError, match=r"878 MiB .*\(ulimit -v 900000\).* needs 2048 MiB: raise the limit"):
        check_room(tmp_path)


def test_a_disk_that_was_filled_meanwhile_is_the_reason(free, tmp_path):
    free[tmp_path] = 0
    with pytest.raises(CannotRunHereError, match="which has 0 MiB free"), ray_start_errors(tmp_path):
        raise RuntimeError("The current node timed out during startup")


@pytest.mark.slow
@pytest.mark.parametrize("start", ["raise RuntimeError('no')", "time.sleep(600)"])
def test_a_ray_that_does_not_start_never_keeps_the_command_from_ending(tmp_path, start):
    program = f"""
import atexit, time
from pathlib import Path
from autotune.cli import app
from autotune.execution import ray_access
from autotune.storage.studies import StoredStudies
kept = StoredStudies("sqlite:///autotune.db")
def start():
    with ray_access.ray_start_errors(Path("/tmp")):
        {start}
atexit.register(time.sleep, 600)  # as Ray's own exit handlers do at times
ray_access._START_S = 1.0
app.app = start
app.main()
"""
    ended = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, timeout=120, check=False, cwd=tmp_path
    )
    assert ended.returncode == ExitCode.INTERRUPTED
    assert "Ray, which makes the runs, did not start" in ended.stderr
    assert not (tmp_path / "autotune.db-wal").exists()
