"""Jobs on a stand-in for PBS: what its commands cost the server, and what they cannot do everywhere."""

from pathlib import Path

import pytest

from launchers import Job, JobState
from launchers.batch import BatchLauncher
from launchers.batch_systems.pbs import PBS
from launchers.site import Site
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.fakes.pbs_answers import ONE_BY_ONE, VERSIONS, WITHOUT_E

JOBS = 5


@pytest.fixture
def cluster(monkeypatch):
    with FakeCluster("pbs") as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        cluster.switch("held")
        yield cluster


@pytest.fixture
def launcher() -> BatchLauncher:
    return BatchLauncher(PBS.scheduler, Site("pbs", cores_per_node=8, poll_s=0.0), patience_s=60.0)


def submit(launcher: BatchLauncher, folder: Path, number: int = JOBS) -> list[str]:
    folders = [folder / str(k) for k in range(number)]
    for own in folders:
        own.mkdir()
    return [launcher.submit(Job(("true",), own)) for own in folders]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("history", [True, False])
def test_a_query_of_all_jobs_is_one_connection(version, history, cluster, launcher, tmp_path):
    cluster.switch("version", version)
    cluster.switch("history", "" if history else None)
    ids = submit(launcher, tmp_path)
    launcher.poll(ids)
    before = cluster.connections
    assert {status.state for status in launcher.poll(ids).values()} == {JobState.QUEUED}
    # PBS 14 has no other way to ask for given jobs.
    assert cluster.connections - before == (JOBS if version in WITHOUT_E else 1)
    assert launcher.trouble == ""


@pytest.mark.parametrize("version", VERSIONS)
def test_jobs_that_have_ended_beside_others_are_gone_without_a_history(version, cluster, launcher, tmp_path):
    cluster.switch("version", version)
    cluster.switch("history", None)
    ids = submit(launcher, tmp_path, 3)
    for ended in ([], ids[:1], ids):
        for job_id in ended:
            cluster.cancel(job_id.split(":")[1])
        states = launcher.poll(ids)
        assert launcher.trouble == ""
        # Whether it has ended is known only after some patience.
        assert [states[job_id].state is JobState.QUEUED for job_id in ids] == [job_id not in ended for job_id in ids]


@pytest.mark.parametrize("version", VERSIONS)
def test_all_jobs_are_cancelled_by_one_command(version, cluster, launcher, tmp_path):
    cluster.switch("version", version)
    ids = submit(launcher, tmp_path)
    launcher.poll(ids)
    before = cluster.connections
    launcher.end(ids)
    assert cluster.connections - before == (JOBS if version in ONE_BY_ONE else 1)
    assert cluster.state.active() == []


def test_jobs_of_somebody_else_are_not_reported_as_cancelled(cluster, launcher, tmp_path):
    ids = submit(launcher, tmp_path, 2)
    cluster.switch("owner")
    launcher.end(ids)
    assert {status.state for status in launcher.poll(ids).values()} == {JobState.QUEUED}
    assert "Unauthorized Request" in launcher.trouble


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_is_away_is_reported(version, cluster, launcher, tmp_path):
    cluster.switch("version", version)
    ids = submit(launcher, tmp_path, 2)
    cluster.switch("away")
    launcher.poll(ids)
    assert "Connection refused" in launcher.trouble
    assert "cannot connect to server pbshost" in launcher.trouble


@pytest.mark.parametrize(
    ("waits", "message", "never"),
    [
        ("queued", "Not Running: Not enough free nodes available", False),
        ("queue stopped", "Not Running: Queue not started.", False),
        ("never", "Can Never Run: Insufficient amount of resource: vnode (nosuch != node1,node2)", True),
        ("held by the user", "is held by the user (qrls lets it go); Job held by user on Sun Nov 22 at 15:41", False),
    ],
)
def test_why_a_job_waits(waits, message, never, cluster, launcher, tmp_path):
    ids = submit(launcher, tmp_path, 1)
    cluster.switch("waits", waits)
    (status,) = launcher.poll(ids).values()
    assert (status.state, status.message, status.never_starts) == (JobState.QUEUED, message, never)


@pytest.mark.parametrize(
    "complaint",
    [
        "qstat: invalid option -- 'E'\nusage: \nqstat [-f] [-J] [-p] [-t] [-x] [ job_identifier... ]",
        "qstat: illegal option -- E",
        "usage: qstat [-h] [-f] [-x] [id ...]\nqstat: error: unrecognized arguments: -E",
        "Unknown option: E",
    ],
)
def test_a_qstat_that_refuses_an_option_is_asked_without_it_once(complaint):
    simpler = PBS.scheduler.fallback(complaint)
    assert simpler is not None
    assert simpler.status(["7.host"]) == ["qstat", "-x", "-f", "7.host"]
    assert simpler.fallback(complaint) is None
