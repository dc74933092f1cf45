"""Jobs on a stand-in for PBS: what its commands cost the server, and what they cannot do everywhere."""

from collections.abc import Callable
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, JobStatus
from launchers.batch import BatchLauncher
from launchers.batch_systems.pbs import PBS
from launchers.site import Site
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.fakes.pbs_answers import ONE_BY_ONE, VERSIONS, WITHOUT_E
from tests.launchers.jobs import wait_for_end, wait_for_output

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


@pytest.mark.parametrize("version", VERSIONS)
def test_a_server_that_is_away_is_reported(version, cluster, launcher, tmp_path):
    cluster.switch("version", version)
    ids = submit(launcher, tmp_path, 2)
    cluster.switch("away")
    launcher.poll(ids)
    assert "Connection refused" in launcher.trouble
    assert "cannot connect to server pbshost" in launcher.trouble


@pytest.mark.parametrize(
    ("waits", "told"),
    [
        ("queued", ("Not Running: Not enough free nodes available", False)),
        ("queue stopped", ("Not Running: Queue not started.", False)),
        ("never", ("Can Never Run: Insufficient amount of resource: vnode (nosuch != node1,node2)", True)),
        ("held by the user", ("is held by the user (qrls lets it go); Job held by user on Sun Nov 22 at 15:41", False)),
    ],
)
def test_why_a_job_waits(waits, told, cluster, launcher, tmp_path):
    ids = submit(launcher, tmp_path, 1)
    cluster.switch("waits", waits)
    (status,) = launcher.poll(ids).values()
    assert (status.state, status.message, status.never_starts) == (JobState.QUEUED, *told)


@pytest.fixture
def ended(cluster, monkeypatch, tmp_path):
    """Return a function that runs a job on a server without a history, ends it, and returns its status."""
    monkeypatch.setattr("launchers.batch.launcher._GRACE_S", 0.2)
    cluster.switch("held", None)
    cluster.switch("history", None)
    launcher = BatchLauncher(PBS.scheduler, Site("pbs", cores_per_node=8, poll_s=0.0), patience_s=0.2)

    def ended(end: Callable[[str], object]) -> JobStatus:
        job = Job(("sh", "-c", "echo ready; exec sleep 1000"), tmp_path)
        job_id = launcher.submit(job)
        wait_for_output(job)
        end(job_id.split(":")[1])
        return wait_for_end(launcher, job_id)

    return ended


def test_a_preempted_job_is_known_without_a_history(cluster, ended):
    status = ended(cluster.preempt)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)


def test_a_job_that_was_killed_is_lost_without_a_history(cluster, ended):
    status = ended(cluster.kill)
    assert (status.state, status.reason) == (JobState.LOST, None)


@pytest.mark.slow
def test_the_end_of_the_wall_time_is_known_without_a_history(cluster, ended):
    cluster.switch("walltime_scale", "0.0005")
    status = ended(lambda _: None)
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.TIMED_OUT)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("=>> PBS: job killed: walltime 62 exceeded limit 60", (JobState.ENDED, EndReason.TIMED_OUT)),
        ("=>> PBS: job killed: vmem 9000kb exceeded limit 8000kb", (JobState.ENDED, EndReason.EXITED)),
        ("=>> PBS: job killed: ncpus 3.9 exceeded limit 1 (sum)", (JobState.ENDED, EndReason.CANCELLED)),
    ],
)
def test_limits_are_read_from_the_output_of_a_job(line, expected):
    report = PBS.scheduler.end_in_log(f"/etc/profile: warning\n{line}\n")
    assert (report.state, report.reason) == expected
    assert PBS.scheduler.end_in_log("no such line") is None


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
