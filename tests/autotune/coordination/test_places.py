"""A working session holds the study and the folder of its runs."""

import sys
from dataclasses import replace

import pytest

from autotune import locks
from autotune.asktell.replies import Replies
from autotune.asktell.work_queue import WorkQueue
from autotune.coordination.places import QueuePool, hold_study, session_resources
from autotune.coordination.session_settings import SessionSettings
from autotune.errors import BusyError
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.local_executor import LocalExecutor
from autotune.locks import IfHeld
from autotune.machines.this_machine import this_machine
from autotune.storage.leases import MemoryLeaseBook
from launchers import Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.slurm import SLURM
from launchers.local import LocalLauncher
from launchers.site import Site
from tests.launchers.answers import FakeSlurm
from tests.support.fakes import ListDisplay


def settings_of(folder, storage):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm"), FakeSlurm())
    url = f"sqlite:///{folder / storage}"
    return SessionSettings(url, "mine", folder / "autotune-runs" / "mine", this_machine(), launcher)


def test_a_job_has_as_many_nodes_as_its_cores_and_cards_need_before_anything_is_stored_of_it():
    pool = QueuePool(Site("slurm", cores_per_node=4, nodes=4, gpus_per_node=2))
    assert pool.take(Resources(cores=8)).nodes == 2
    assert pool.take(Resources(cores=4, gpus=7)).nodes == 4
    assert pool.take(Resources(cores=99)) == Resources(cores=16, nodes=4)
    # Programs that make runs by themselves have what they take.
    assert QueuePool().take(Resources(cores=99)) == Resources(cores=99)


def test_two_storages_do_not_make_the_jobs_of_studies_of_one_name_in_one_folder(tmp_path):
    first, second = settings_of(tmp_path, "a.db"), settings_of(tmp_path, "b.db")
    with hold_study(first, ListDisplay()):
        with (
            pytest.raises(BusyError, match=r"autotune-runs/mine has the runs .* by process .*a\.db: .*--wait.*--runs"),
            hold_study(second, ListDisplay()),
        ):
            pass
        # A session without runs needs no folder, and another folder is free.
        with hold_study(second, ListDisplay(), makes_runs=False):
            pass
        with hold_study(replace(second, runs=tmp_path / "elsewhere"), ListDisplay()):
            pass
    with hold_study(second, ListDisplay()):
        pass


@pytest.mark.parametrize("kind", [BatchExecutor, WorkQueue, LocalExecutor])
def test_only_a_cluster_needs_ray(tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "autotune.execution.ray_executor", None)
    settings = settings_of(tmp_path, "a.db")
    if kind is LocalExecutor:
        settings = replace(settings, launcher=LocalLauncher())
    if kind is WorkQueue:
        queue = WorkQueue(answers=Replies(lambda: None))
        settings = replace(settings, launcher=LocalLauncher(), external=queue)
    with (
        hold_study(settings, ListDisplay()) as (_, place),
        session_resources(place, MemoryLeaseBook(), 2) as resources,
    ):
        assert isinstance(resources.executor, kind)


def test_the_folder_of_runs_is_waited_for_where_a_session_waits(tmp_path, monkeypatch):
    first = hold_study(settings_of(tmp_path, "a.db"), ListDisplay())
    first.__enter__()
    monkeypatch.setattr(locks.time, "sleep", lambda _: first.__exit__(None, None, None))
    display = ListDisplay()
    with hold_study(replace(settings_of(tmp_path, "b.db"), if_held=IfHeld.WAIT), display):
        assert len(display.lines) == 1
