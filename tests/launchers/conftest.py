"""A launcher of Slurm jobs without a Slurm. A module may replace these fixtures by its own of the same name."""

from pathlib import Path

import pytest

from launchers import Job, JobStatus
from launchers.batch import BatchLauncher
from launchers.batch_systems.slurm import SLURM
from launchers.site import Site
from tests.launchers.answers import PATIENCE_S, POLL_S, Clock, FakeSlurm


@pytest.fixture
def queue() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.sleep", clock.move)
    return clock


@pytest.fixture
def make(queue, clock):
    site = Site("slurm", cores_per_node=4, poll_s=POLL_S)
    return lambda: BatchLauncher(SLURM.scheduler, site, queue, clock, PATIENCE_S)


@pytest.fixture
def launcher(make) -> BatchLauncher:
    return make()


@pytest.fixture
def submit(launcher, tmp_path):
    def submit(name: str = "run") -> tuple[str, Path]:
        folder = tmp_path / name
        folder.mkdir()
        return launcher.submit(Job(("true",), folder)), folder

    return submit


@pytest.fixture
def look(launcher, clock):
    def look(job_id: str) -> JobStatus:
        """Poll after the time at which the scheduler may be queried again."""
        clock.move(POLL_S)
        return launcher.poll([job_id])[job_id]

    return look
