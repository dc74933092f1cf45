"""The room that Ray needs is there before it starts, or a message names what lacks."""

import os
import resource

import pytest

from autotune.errors import CannotRunHereError
from autotune.execution import ray_room
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
