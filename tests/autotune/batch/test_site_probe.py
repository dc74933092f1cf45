"""The findings of `autotune doctor --launcher` from its jobs at a site."""

import json
import socket
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from autotune.batch import node_probe
from autotune.batch.probe_report import site_sentences, site_table, site_text
from autotune.batch.site_file import find_cluster
from autotune.batch.site_probe import JobFinding, NodeSight, SiteFindings
from launchers.batch_systems import grid_engine, pbs, slurm
from tests.launchers.fakes.cluster import FakeCluster
from tests.support.command_line import run_main

SIGHT = NodeSight(
    host="n1",
    cpus=(0, 1, 2, 3),
    online=(0, 1, 2, 3),
    memory_bytes=2**34,
    sees_folder=True,
    can_submit=False,
    mpi="Open MPI 4.1.4",
    hosts=1,
    starters={},
    began=10.0,
    ended=12.0,
)


def seen(**changes):
    return JobFinding(1, SIGHT.model_copy(update=changes), 3.0)


def found(*jobs, **changes):
    return SiteFindings("PBS", jobs, **changes)


def test_jobs_that_may_use_a_whole_node_get_whole_nodes():
    told = found(seen(), seen(began=11.0), remembers=False)
    said = "\n".join(site_sentences(told))
    assert "a job of one core may use all 4 of its node" in said
    assert "two jobs on one node could both use 0, 1, 2, 3" in said
    assert "history: none" in said
    assert "a pilot cannot submit itself again" in said
    assert site_table(told, {"scheduler": "pbs"}) == {"scheduler": "pbs", "exclusive": True, "mpi": "Open MPI 4.1.4"}


def test_jobs_that_are_kept_to_cores_of_their_own_may_share_a_node():
    told = found(seen(cpus=(0,)), seen(cpus=(1,), began=11.0))
    assert "cores: two jobs on one node had different cores" in site_sentences(told)
    assert "exclusive" not in site_table(told, {})


@pytest.mark.parametrize("other", [{"host": "n2"}, {"began": 12.5}])
def test_nothing_is_said_of_two_jobs_that_did_not_meet(other):
    told = found(seen(cpus=(0,)), seen(cpus=(0,), **other))
    assert any("did not run on one node at the same time" in sentence for sentence in site_sentences(told))


def test_which_command_reaches_the_other_node_is_said_and_what_was_refused():
    two = JobFinding(2, SIGHT.model_copy(update={"hosts": 2, "starters": {"srun": "", "ssh": "no key", "qrsh": None}}))
    said = "\n".join(site_sentences(found(two, JobFinding(1, problem="sbatch does not take the job: no account"))))
    assert "srun reaches the other node" in said
    assert "ssh does not reach the other node of a job (no key)" in said
    assert "qrsh" not in said
    assert "a job of one core: sbatch does not take the job: no account" in said


@pytest.mark.parametrize(
    ("ranks", "nodes", "words"),
    [
        ("", 2, "Open MPI 4.1.4 starts ranks on both nodes of a job"),
        (
            "it was built without PBS (tm): ssh: connect to host n2 port 22: Connection refused",
            1,
            "without PBS (tm): ssh",
        ),
        (None, 2, ""),
    ],
)
def test_runs_have_several_nodes_only_where_ranks_start_there(ranks, nodes, words):
    two = JobFinding(2, SIGHT.model_copy(update={"hosts": 2, "mpi_over_nodes": ranks}))
    assert site_table(found(two), {})["nodes"] == nodes
    # A site that it is based on may have more.
    assert site_table(found(two), {"nodes": 4})["nodes"] == (4 if nodes > 1 else 1)
    assert words in "\n".join(site_sentences(found(two)))


@pytest.mark.parametrize(
    ("other_sees", "words"),
    [
        (True, "files: this folder has the same path on n1, n2"),
        (False, "files: this folder is missing on n2: runs there fail"),
        (None, "files: no command reaches n2, so this folder was not looked for there"),
    ],
)
def test_the_folder_is_looked_for_on_every_node(other_sees, words):
    two = JobFinding(2, SIGHT.model_copy(update={"hosts": 2, "other": "n2", "other_sees_folder": other_sees}))
    assert words in site_sentences(found(two))
    # Another job ran there.
    assert "files: this folder has the same path on n1, n2" in site_sentences(found(two, seen(host="n2"), seen()))


@pytest.fixture
def two_nodes(tmp_path, monkeypatch):
    """A job of PBS on this host and on `other`, which `pbs_tmrsh` reaches; return a function that runs the probe."""
    (tmp_path / "token").touch()
    (tmp_path / "nodes").write_text(f"{socket.gethostname()}\nother\n")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()

    def probe(**programs: str) -> dict[str, Any]:
        for name, text in {"pbs_tmrsh": 'shift; exec "$@"', **programs}.items():
            (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (bin_folder / name).chmod(0o755)
        own = {"PATH": f"{bin_folder}:/usr/bin:/bin", "PBS_JOBID": "7.host", "PBS_NODEFILE": str(tmp_path / "nodes")}
        argv = [sys.executable, "-I", node_probe.__file__, str(tmp_path), "2", "2", "qsub"]
        return json.loads(subprocess.run(argv, env=own, capture_output=True, text=True, check=True).stdout)

    return probe


_MPIRUN = """
case $1 in --version) echo "mpirun (Open MPI) 4.1.4"; exit;; esac
"""


def test_ranks_are_started_on_both_nodes(two_nodes):
    report = two_nodes(mpirun=f"{_MPIRUN}echo rank on a; echo rank on b")
    assert (report["mpi_over_nodes"], report["other"], report["other_sees_folder"]) == ("", "other", True)


def test_why_ranks_start_on_one_node_only_is_told(two_nodes):
    frame, why = "echo ---------- >&2", "There are not enough slots available"
    info = 'echo "mca:plm:rsh:version:4"'
    report = two_nodes(mpirun=f"{_MPIRUN}{frame}; echo {why} >&2; {frame}; exit 1", ompi_info=info)
    assert report["mpi_over_nodes"] == f"it was built without PBS (tm): {why}"
    report = two_nodes(mpirun=f"{_MPIRUN}{frame}; echo {why} >&2; exit 1", ompi_info='echo "mca:plm:tm:version:4"')
    assert report["mpi_over_nodes"] == why
    report = two_nodes(mpirun=f"{_MPIRUN}echo rank on a; echo rank on a")
    assert report["mpi_over_nodes"] == "both ranks ran on a"


def test_a_folder_that_the_other_node_lacks_is_told(two_nodes):
    report = two_nodes(pbs_tmrsh='shift; case $1 in test) exit 1;; esac; exec "$@"', mpirun=_MPIRUN)
    assert (report["starters"]["pbs_tmrsh"], report["other_sees_folder"]) == ("", False)
    assert two_nodes(pbs_tmrsh="exit 1", mpirun=_MPIRUN)["other_sees_folder"] is None


def test_limits_are_read_as_they_are_told():
    partitions = (
        "PartitionName=a Default=NO MaxTime=1:00:00 State=UP\n"
        "PartitionName=b Default=YES MaxTime=UNLIMITED MaxNodes=2 PreemptMode=OFF State=UP\n"
    )
    assert slurm.partition_limits(partitions) == ("partition b: State UP, MaxNodes 2, PreemptMode OFF",)
    queues = "Queue: workq\n    queue_type = Execution\n    max_run = [u:PBS_GENERIC=2]\n    enabled = True\n\n"
    assert pbs.queue_limits(queues) == ("queue workq: max_run [u:PBS_GENERIC=2], enabled True",)
    assert grid_engine.cluster_limits("max_u_jobs   5\nmax_jobs  0\n") == ("cluster: max_u_jobs 5",)


def test_unlike_nodes_of_a_partition_are_said():
    answer = "a|4|48|191000|(null)\na|2|64|256000|gpu:a100:4\nb|9|48|191000|(null)\n"
    (said,) = slurm.unlike_nodes(answer)
    kinds = "4 of 48 cores, 191000 MiB; 2 of 64 cores, 256000 MiB and gpu:a100:4"
    assert said.startswith(f"partition a has unlike nodes: {kinds}: runs on them do not compare")
    assert "--constraint" in said


def test_a_federation_is_said_not_to_be_supported():
    (said,) = slurm.federation_refusal("Federation: fed\nSelf:    a:10.0.0.1:6817 ID:1 FedState:ACTIVE\n")
    assert said.startswith("federation fed: federations are not supported")
    assert slurm.federation_refusal("") == ()


def test_the_site_file_is_one(tmp_path):
    text = site_text(found(seen(), seen()), {"name": "here", "scheduler": "pbs", "machine": "this", "queue": "q"})
    assert tomllib.loads(text)["queue"] == "q"
    (tmp_path / "here.toml").write_text(text)
    site = find_cluster(str(tmp_path / "here.toml")).site
    assert (site.scheduler, site.queue, site.exclusive) == ("pbs", "q", True)


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Return a function that asks the doctor about a launcher, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))

    def run(launcher, *more, path=None):
        if path is not None:
            monkeypatch.setenv("PATH", path)
        return run_main("doctor", "--launcher", launcher, *more)

    return run


def test_nobody_is_asked_where_nobody_can_be(ask):
    with FakeCluster("pbs") as cluster:
        ended = ask("pbs", path=cluster.path)
        assert not list((cluster.bin.parent / "scripts").iterdir())
    assert ended.returncode == 2
    assert "3 jobs" in ended.stderr
    assert "--yes" in ended.stderr


@pytest.mark.slow
def test_a_pbs_is_asked_and_its_site_file_written(tmp_path, ask):
    with FakeCluster("pbs", history=False) as cluster:
        words = ("--yes", "--queue", "q", "--write", "site.toml", "--wait", "60s")
        ended = ask("pbs", *words, path=cluster.path)
    assert ended.returncode == 0, ended.stderr
    assert "from submission to start" in ended.stdout
    assert "history: none" in ended.stdout
    assert "the same path" in ended.stdout
    site = find_cluster(str(tmp_path / "site.toml")).site
    assert (site.scheduler, site.queue) == ("pbs", "q")
    assert not list(tmp_path.glob(".autotune-doctor-*"))


def test_a_file_that_is_there_is_not_replaced_and_no_job_submitted_for_it(tmp_path, ask):
    (tmp_path / "site.toml").write_text("# mine\n")
    with FakeCluster("pbs") as cluster:
        for target, words in (("site.toml", "site.toml exists"), ("no/site.toml", "no folder")):
            ended = ask("pbs", "--yes", "--write", target, path=cluster.path)
            assert (ended.returncode, words in ended.stderr) == (2, True)
        assert not list((cluster.bin.parent / "scripts").iterdir())
    assert (tmp_path / "site.toml").read_text() == "# mine\n"


@pytest.mark.full
def test_a_real_slurm_is_asked(slurm, ask):
    ended = ask("slurm", "--yes", "--json", "--queue", "pair")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert [job["problem"] for job in told["jobs"]] == ["", "", ""]
    assert told["history"] is True
    assert "nodes: srun reaches the other node of a job" in told["sentences"]
    assert "nodes: Open MPI 4.1.4 starts ranks on both nodes of a job" in told["sentences"]
    (two,) = (job["sight"] for job in told["jobs"] if job["nodes"] == 2)
    assert f"files: this folder has the same path on {two['host']}, {two['other']}" in told["sentences"]
    assert "cores: two jobs on one node had different cores" in told["sentences"]
    assert any(limit.startswith("partition pair: State UP") for limit in told["limits"])


@pytest.mark.full
def test_a_real_grid_engine_is_asked(grid_engine, ask):
    ended = ask("grid-engine", "--yes", "--json")
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert [job["problem"] == "" for job in told["jobs"]] == [True, True, False]
    # Slurm writes its accounting at any time, so it may or may not know an ended job by now.
    assert any("a job of one core may use all" in sentence for sentence in told["sentences"])
