"""What is said of a Slurm before a study: clusters that nobody could follow jobs to, nodes that do not compare."""

import pytest

from autotune.batch.site_file import find_cluster
from autotune.cli.placement import cautions
from autotune.errors import CannotRunHereError
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.command_line import invoke

FEDERATION = "Federation: fed\nSelf:       one:10.0.0.1:6817 ID:1 FedState:ACTIVE Features:\n"
UNLIKE = "debug*|4|48|191000|(null)\ndebug*|2|64|256000|(null)\nother|1|8|16000|(null)\n"


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_CLUSTERS", raising=False)
    with FakeCluster("slurm") as found:
        monkeypatch.setenv("PATH", found.path)
        yield found


@pytest.mark.parametrize(
    ("clusters", "federation", "said"),
    [
        (None, FEDERATION, "federation fed: federations are not supported"),
        ("one,two", "", "SLURM_CLUSTERS=one,two names several clusters"),
        ("all", "", "SLURM_CLUSTERS=all names several clusters"),
    ],
)
def test_jobs_that_might_go_to_several_clusters_are_refused(cluster, monkeypatch, clusters, federation, said):
    cluster.switch("federation", federation)
    if clusters is not None:
        monkeypatch.setenv("SLURM_CLUSTERS", clusters)
    ended = invoke("study", "fftw", "--launcher", "slurm", "--site", "slurm")
    assert isinstance(ended.exception, CannotRunHereError)
    assert said in str(ended.exception)
    assert cluster.state.jobs() == []


def of_site(tmp_path, *lines):
    (tmp_path / "mine.toml").write_text('base = "slurm"\nmachine = "this"\n' + "\n".join(lines))
    return cautions(find_cluster(str(tmp_path / "mine.toml")))


def test_a_partition_of_unlike_nodes_is_said(cluster, tmp_path):
    cluster.switch("nodes", UNLIKE)
    (said,) = of_site(tmp_path)
    assert said.startswith("partition debug has unlike nodes: 4 of 48 cores, 191000 MiB; 2 of 64 cores, 256000 MiB")
    assert of_site(tmp_path, 'directives = ["--constraint=skylake"]') == ()
    cluster.switch("nodes", UNLIKE.replace("*", "").replace("64", "48").replace("256000", "191000").splitlines()[2])
    assert of_site(tmp_path) == ()
