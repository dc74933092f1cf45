import os
from pathlib import Path

import pytest

from autotune.errors import BusyError
from autotune.execution.core_pool import CoreClaim, CorePool, claim_purpose
from launchers import Resources
from tests.support.hardware_threads import two_cores


def test_two_jobs_never_share_a_core():
    pool = CorePool([0, 2, 4, 6])
    first, second = pool.take(Resources(2)), pool.take(Resources(2))
    assert first == Resources(2, cpus=(0, 2))
    assert second == Resources(2, cpus=(4, 6))
    assert pool.take(Resources(1)) is None
    pool.give_back(first)
    assert pool.take(Resources(2)) == Resources(2, cpus=(0, 2))


def test_a_job_that_names_its_cores_gets_these_and_no_other():
    pool = CorePool([0, 2, 4, 6])
    named = Resources(2, cpus=(4, 6))
    assert pool.take(named) == named
    assert pool.take(Resources(1, cpus=(6,))) is None
    assert pool.take(Resources(2)) == Resources(2, cpus=(0, 2))
    pool.give_back(named)
    assert pool.take(named) == named


def test_a_job_larger_than_the_machine_gets_all_of_it():
    pool = CorePool([0, 1])
    assert pool.take(Resources(8)).cpus == (0, 1)
    assert pool.take(Resources(8)) is None


def test_the_other_hardware_thread_of_a_core_is_no_other_core(tmp_path, monkeypatch):
    two_cores(tmp_path / "cpus", monkeypatch)
    claim = CoreClaim.claim([0, 1], tmp_path)
    with pytest.raises(BusyError, match="core 1 is in use"):
        CoreClaim.claim([3], tmp_path)
    claim.release()
    CoreClaim.claim([2, 3], tmp_path).release()


def test_a_second_study_on_the_same_cores_is_refused_and_told_by_whom(tmp_path, monkeypatch):
    monkeypatch.setattr("launchers.cpus.CPUS", str(tmp_path / "cores of one thread"))
    claim = CoreClaim.claim([0, 1], tmp_path, work=claim_purpose("melt"))
    holder = rf"process {os.getpid()} on \S+ since [-\d]+ [:\d]+ UTC, study 'melt' of \S+ in {Path.cwd()}"
    with pytest.raises(BusyError, match=rf"core 1 is in use by {holder}: .*--cores"):
        CoreClaim.claim([1, 2], tmp_path)
    CoreClaim.claim([2], tmp_path).release()
    claim.release()
    CoreClaim.claim([1, 2], tmp_path).release()
