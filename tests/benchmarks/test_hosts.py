"""Emulated hosts: ranks go to each of them, also those of a study's runs; their links are slow; nothing is left."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.hosts import EmulationError, hosts, link_words
from tests.docs.page import ROOT
from tests.support.hosts import why_not

needs_namespaces = pytest.mark.skipif(bool(why_not()), reason=f"no hosts here: {why_not()}")
RUN_OF_A_STUDY = """
from pathlib import Path
from autotune.execution.task import run_job
from launchers import Job, MpiStart, Resources
from launchers.local import local_launcher
job = Job(("hostname",), Path("."), mpi=MpiStart(2), resources=Resources(cores=2), time_limit_s=60)
print(run_job(job, local_launcher()).stdout, end="")
"""


def on_hosts(*argv, options=()):
    command = [sys.executable, "-m", "benchmarks.hosts", *options, "--", *argv]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=120)


@needs_namespaces
@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("ompi_info"), reason="no Open MPI here")
def test_the_ranks_of_a_run_go_to_all_hosts(tmp_path):
    (tmp_path / "run").mkdir()
    program = f"import os; os.chdir({str(tmp_path / 'run')!r}){RUN_OF_A_STUDY}"
    done = on_hosts(sys.executable, "-c", program)
    assert sorted(done.stdout.split()) == ["node1", "node2"], done.stderr


@needs_namespaces
def test_a_command_runs_on_the_first_host_behind_a_slow_link():
    done = on_hosts("sh", "-c", "hostname; tc qdisc show dev eth0; exit 7", options=["--rate", "100mbit"])
    assert done.returncode == 7
    assert done.stdout.startswith("node1\n")
    assert "tbf" in done.stdout
    assert "rate 100Mbit" in done.stdout
    assert done.stderr.startswith("2 emulated hosts on this machine, each link: tbf rate 100mbit")


@needs_namespaces
def test_nothing_is_left_of_the_hosts(tmp_path):
    with hosts(3, [], 1, tmp_path) as begin:
        target = int(begin[1].removeprefix("--target="))
        done = subprocess.run([*begin, "hostname"], capture_output=True, text=True, check=True)
        assert done.stdout == "node1\n"
        assert Path(f"/proc/{target}").exists()
        told = Path(begin[-1].partition("=")[2]).read_text()
        # What a killed mpirun leaves goes with the folder.
        assert f"orte_tmpdir_base = {tmp_path}\n" in told
    assert not Path(f"/proc/{target}").exists()


@needs_namespaces
def test_a_link_that_the_kernel_does_not_have_is_said(tmp_path):
    with pytest.raises(EmulationError, match=r"^tc qdisc add .*nosuch"), hosts(2, ["nosuch"], 1, tmp_path):
        pass


def test_a_delay_is_told_to_netem_with_the_rate():
    assert link_words("", 0) == []
    assert link_words("1gbit", 50)[:5] == ["netem", "delay", "50us", "rate", "1gbit"]
    assert link_words("1gbit", 0)[:3] == ["tbf", "rate", "1gbit"]
