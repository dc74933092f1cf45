"""Chains of pilot jobs, on stand-ins for the batch systems."""

import os
from pathlib import Path

import pytest

from autotune.batch.pilot_job import PilotJob, pilot_script, submit_chain
from autotune.errors import CannotRunHereError
from tests.launchers.fakes.cluster import FakeCluster
from tests.launchers.jobs import wait_for
from tests.support.command_line import invoke

# A study that is done in its second session; it reports when it runs, and that no other session runs.
STUDY = """#!/bin/bash
mkdir alone && echo begins >>log || echo "not alone" >>log
sleep 0.1; rmdir alone
[ "$(grep -c begins log)" -ge 2 ] || exit 7
"""


@pytest.fixture(params=["slurm", "pbs"])
def cluster(request, monkeypatch):
    with FakeCluster(request.param) as cluster:
        monkeypatch.setenv("PATH", cluster.path)
        yield cluster


def script_in(folder: Path, system: str) -> Path:
    python, script = folder / "python", folder / "job.sh"
    python.write_text(STUDY)
    python.chmod(0o700)
    job = PilotJob("x", str(script), str(folder), str(python), ["x"], cores_per_node=1, chained=True)
    script.write_text(pilot_script(system, job))
    return script


@pytest.mark.slow
def test_each_job_goes_on_after_the_one_before_and_the_last_finds_nothing_to_do(cluster, tmp_path):
    numbers = submit_chain(cluster.kind, script_in(tmp_path, cluster.kind), 3)
    wait_for(lambda: not cluster.state.active())
    assert (tmp_path / "log").read_text() == "begins\n" * 3
    assert [cluster.state.read(number)["code"] for number in numbers] == [7, 0, 0]


def test_a_job_that_is_refused_leaves_those_before_it(cluster, tmp_path):
    cluster.switch("held")
    script = script_in(tmp_path, cluster.kind)
    (first,) = submit_chain(cluster.kind, script, 1)
    cluster.switch("refuse", "account")
    with pytest.raises(
        CannotRunHereError, match=r"no job could be submitted; .* refused the next one: .*[Ii]nvalid [Aa]ccount"
    ):
        submit_chain(cluster.kind, script, 2)
    assert [job["id"] for job in cluster.state.active()] == [first]


def test_the_command_submits_from_the_login_node(cluster, tmp_path, monkeypatch):
    cluster.switch("held")
    monkeypatch.chdir(tmp_path)
    words = ["pilot", "qe", "--script", cluster.kind, "--cores-per-node", "4", "--chain", "3"]
    cluster.switch("slots", "8")
    ended = invoke(*words)
    assert ended.exit_code == 0, ended.output
    jobs = cluster.state.active()
    assert ", ".join(job["id"] for job in jobs) in ended.output
    assert [job["after"] for job in jobs] == ["", *(job["id"] for job in jobs[:-1])]
    # The script must not submit itself: the next job is already submitted.
    script = Path("autotune-job.sh").read_text()
    assert not any(line.lstrip().startswith(("sbatch", "qsub")) for line in script.splitlines())
    assert os.access("autotune-job.sh", os.X_OK)
