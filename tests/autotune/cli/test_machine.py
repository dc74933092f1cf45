"""`autotune machine` as a person types it."""

import json
import os
import signal
import subprocess
import sys
import tomllib

import psutil
import pytest

from autotune.machines.this_machine import this_machine
from tests.support.command_line import run_main

GOLDEN = """\
summit-dev: SummitDev, the early access system of Summit, Oak Ridge National Laboratory
  nodes.count                54                    [1]
  nodes.scheduler            lsf                   [1]
  cpu.vendor                 ibm                   [1]
  cpu.model                  IBM POWER8            [1]
  cpu.architecture           ppc64le               [1]
  cpu.microarchitecture      power8le              [2]
  cpu.sockets                2                     [1]
  cpu.cores_per_node         20                    [1]
  cpu.threads_per_core       8                     [1]
  cpu.vector_bits            128                   [3]
  memory.bytes               256 GiB               [1]
  gpu.count                  4                     [1]
  gpu.vendor                 nvidia                [4]
  gpu.model                  Tesla P100-SXM2-16GB  [4]
  gpu.architecture           pascal                [4]
  gpu.memory_bytes           16 GiB                [1]
  gpu.bandwidth_bytes_per_s  720 GB/s              [5]
  gpu.flops_fp32             10.6 Tflop/s          [4]
  gpu.flops_fp64             5.3 Tflop/s           [4]
  gpu.compute_units          56                    [4]
  gpu.lanes                  32                    [6]
  gpu.l2_bytes               4 MiB                 [4]
  gpu.shared_memory_bytes    64 KiB                [4]
  gpu.registers              65536                 [4]
  network.name               InfiniBand EDR        [1]
  disk.name                  NVMe of the node      [1]
[1] https://docs.olcf.ornl.gov/systems/summitdev_user_guide.html (an old version)
[2] https://github.com/archspec/archspec-json (its name for POWER8)
[3] Power ISA 2.07, vector-scalar extension
"""


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))


def run_machine(*words: str) -> "subprocess.CompletedProcess[str]":
    return run_main("machine", *words)


def test_a_described_machine():
    ended = run_machine("summit-dev")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(GOLDEN)
    assert len(ended.stdout.splitlines()) == len(GOLDEN.splitlines()) + 3


def test_as_json():
    ended = run_machine("gadi-gpuvolta", "--json")
    found = json.loads(ended.stdout)
    assert found["name"] == "gadi-gpuvolta"
    assert found["facts"]["gpus_per_node"] == 4
    assert found["given"]["cpu.cores_per_node"] == 48
    assert found["sources"].keys() == found["given"].keys()


def test_the_list(tmp_path):
    ended = run_machine("--list")
    assert "gadi-dgxa100" in ended.stdout
    folder = tmp_path / "config" / "autotune" / "machines"
    folder.mkdir(parents=True)
    (folder / "bad.toml").write_text("cores = 1", encoding="utf-8")
    listed = {one["name"]: one["title"] for one in json.loads(run_machine("--list", "--json").stdout)}
    assert "has errors" in listed["bad"]
    assert listed["titan"].startswith("Titan")
    assert run_machine("bad").returncode == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("gady",), "no machine is called 'gady' (did you mean 'gadi'?)"),
        (("./nothing.toml",), "cannot read the machine file nothing.toml: No such file"),
        (("gadi", "--measure"), "--measure measures this machine, not 'gadi'"),
        (("gadi", "--output", "there.toml"), "the file exists"),
    ],
)
def test_mistakes(tmp_path, words, said):
    (tmp_path / "there.toml").write_text("mine", encoding="utf-8")
    ended = run_machine(*words)
    assert ended.returncode == 2
    assert said in ended.stderr
    assert "Traceback" not in ended.stderr
    assert (tmp_path / "there.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.slow
def test_this_machine_can_be_handed_on(tmp_path):
    ended = run_machine("--output", "mine.toml")
    assert (ended.returncode, ended.stdout) == (0, ""), ended.stderr
    table = tomllib.loads((tmp_path / "mine.toml").read_text(encoding="utf-8"))
    assert table["name"] == "mine"
    assert table["cpu"]["cores_per_node"] == this_machine().cores
    again = json.loads(run_machine("./mine.toml", "--json").stdout)
    assert again["facts"] == json.loads(run_machine("--json").stdout)["facts"]


def test_a_place_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    ended = run_machine("--output", "file/mine.toml")
    assert ended.returncode == 5
    assert ended.stderr.startswith("autotune: --output file/mine.toml: ")


@pytest.mark.slow
def test_ctrl_c_leaves_nothing(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-m", "autotune", "machine", "--measure"],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert process.stderr.readline().startswith("measuring ")
    assert "memory bandwidth" in process.stderr.readline()
    started = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, ""), err
    assert "nothing was kept, and nothing is left running" in err
    assert "Traceback" not in err
    assert started
    assert not [child for child in started if child.is_running()]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.full
def test_measured_figures_are_kept_and_shown(tmp_path):
    ended = run_machine("--measure", "--json")
    assert ended.returncode == 0, ended.stderr
    assert "memory bandwidth of 1 core: " in ended.stderr
    (kept,) = (tmp_path / "config" / "autotune" / "measured").iterdir()
    assert f"kept in {kept}" in ended.stderr
    facts = json.loads(ended.stdout)["facts"]
    assert facts["measured_memory_bandwidth_bytes_per_s"] > 1e8
    assert facts["measured_blas_flops"] > 1e7
    assert json.loads(run_machine("--json").stdout)["facts"] == facts
    shown = run_machine().stdout
    assert "(repeats differ by " in shown
    assert "] autotune machine --measure, " in shown
    kept.write_text("[measured]\nblas_flop = 1\n", encoding="utf-8")
    broken = run_machine()
    assert broken.returncode == 2
    assert "did you mean 'blas_flops'" in broken.stderr
    assert str(kept) in broken.stderr
