"""Placement: a job starts on the requested host, or on a host other than the known ones."""

import pytest

from launchers import Job, LaunchError, Place, Resources
from launchers.batch import BatchLauncher
from launchers.batch_systems.registry import BATCH_SYSTEMS
from launchers.run import run
from launchers.site import Site
from tests.launchers.fakes.cluster import FakeCluster

HOSTS = ("n1", "n2", "n3")
# The stand-in of Flux has one host: nothing in a job's environment tells its name.
FAKED = [name for name in BATCH_SYSTEMS if name != "flux"]


@pytest.fixture(params=FAKED)
def cluster(request, monkeypatch):
    with FakeCluster(request.param) as cluster:
        cluster.switch("host names", " ".join(HOSTS))
        monkeypatch.setenv("PATH", cluster.path)
        yield BatchLauncher(BATCH_SYSTEMS[request.param].scheduler, Site(request.param, poll_s=0.05), patience_s=0.5)


def host_of(launcher, folder, place: Place) -> str:
    folder.mkdir()
    status = run(launcher, Job(("true",), folder, resources=Resources(), place=place))
    assert status.affinity is not None, status
    return status.affinity.host.partition(".")[0]


@pytest.mark.slow
def test_a_job_starts_on_its_host(cluster, tmp_path):
    assert cluster.hosts.is_free
    for host in reversed(HOSTS):
        assert host_of(cluster, tmp_path / host, Place(host)) == host


@pytest.mark.slow
def test_all_hosts_are_found_one_after_the_other(cluster, tmp_path):
    known: list[str] = []
    for _ in HOSTS:
        place = cluster.hosts.find_other(1, known)
        known.append(host_of(cluster, tmp_path / str(len(known)), place))
    assert sorted(known) == sorted(HOSTS)


@pytest.mark.full
def test_on_a_real_slurm_a_job_starts_on_the_requested_host(slurm, tmp_path):
    launcher = BatchLauncher(BATCH_SYSTEMS["slurm"].scheduler, Site("slurm", queue="pair", poll_s=0.2))
    assert host_of(launcher, tmp_path / "on", Place(slurm.second)) == slurm.second
    assert host_of(launcher, tmp_path / "other", Place(avoid=(slurm.second,))) == slurm.host
    with pytest.raises(LaunchError, match="node configuration is not available"):
        launcher.submit(Job(("true",), tmp_path, place=Place(avoid=(slurm.host, slurm.second))))
    with pytest.raises(LaunchError, match="Invalid node name"):
        launcher.submit(Job(("true",), tmp_path, place=Place("nowhere")))


@pytest.mark.full
def test_on_a_real_grid_engine_a_job_starts_on_its_host_or_waits_for_another(grid_engine, tmp_path):
    launcher = BatchLauncher(BATCH_SYSTEMS["grid-engine"].scheduler, Site("grid-engine", poll_s=0.2))
    host = host_of(launcher, tmp_path / "any", Place())
    assert host_of(launcher, tmp_path / "on", Place(host)) == host
    assert host_of(launcher, tmp_path / "other", Place(avoid=("n1", "n2"))) == host
    (tmp_path / "nowhere").mkdir()
    job = launcher.submit(Job(("true",), tmp_path / "nowhere", place=Place(avoid=(host,))))
    try:
        assert launcher.poll([job])[job].state.value == "queued"
    finally:
        launcher.cancel(job)
