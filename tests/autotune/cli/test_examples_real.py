"""The worked examples that ship, with their real programs: one run each, and short studies of two of them."""

import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from autotune.machines.this_machine import this_machine
from launchers.detect import detect
from tests.support.quick_study import QUICK
from tests.support.warm import autotune

pytestmark = [pytest.mark.full, pytest.mark.cores]

GCC = pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc: apt-get install gcc")
HPCC = pytest.mark.skipif(
    shutil.which("hpcc") is None or detect() is None, reason="no hpcc or no mpirun: apt-get install hpcc openmpi-bin"
)
GROMACS = pytest.mark.skipif(shutil.which("gmx") is None, reason="no gmx: apt-get install gromacs")
LAMMPS = pytest.mark.skipif(
    shutil.which("lmp") is None or detect() is None, reason="no lmp or no mpirun: apt-get install lammps openmpi-bin"
)
CP2K = pytest.mark.skipif(
    shutil.which("cp2k.psmp") is None or detect() is None,
    reason="no cp2k or no mpirun: apt-get install cp2k openmpi-bin",
)
NWCHEM = pytest.mark.skipif(
    shutil.which("nwchem") is None or detect() is None,
    reason="no nwchem or no mpirun: apt-get install nwchem openmpi-bin",
)
ESPRESSO = pytest.mark.skipif(
    shutil.which("ph.x") is None or not Path("/usr/share/espresso/pseudo/Si.pz-vbc.UPF").is_file() or detect() is None,
    reason="apt-get install quantum-espresso quantum-espresso-data openmpi-bin",
)
FFTW = pytest.mark.skipif(
    shutil.which("gcc") is None or not Path("/usr/include/fftw3.h").is_file(), reason="apt-get install gcc libfftw3-dev"
)
POSTGRES = pytest.mark.skipif(
    not (shutil.which("postgres") or list(Path("/usr/lib/postgresql").glob("*/bin/postgres"))),
    reason="no PostgreSQL server: apt-get install postgresql",
)
REDIS = pytest.mark.skipif(shutil.which("redis-server") is None, reason="no Redis: apt-get install redis-server")
NGINX = pytest.mark.skipif(not shutil.which("nginx") or not shutil.which("wrk"), reason="apt-get install nginx wrk")
ENGINES = Path(os.environ.get("AUTOTUNE_INFERENCE_PYTHON") or Path(sys.prefix) / "share/autotune/inference/bin/python3")
BIG_DATA = Path(os.environ.get("AUTOTUNE_BIGDATA_PYTHON") or Path(sys.prefix) / "share/autotune/bigdata/bin/python3")
TORCH = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch: pip install torch")

STUDIES = Path(__file__).parents[3] / "studies"
SMALLER = {
    "checkpoint": {
        "checkpoint.toml": (
            '"300",\n    "--between", "0.8", "--failures", "12"',
            '"100",\n    "--between", "0.8", "--failures", "2"',
        )
    },
    "gromacs": {"inputs/water.mdp": ("nsteps        = 1000", "nsteps        = 600")},
    "hpl": {"inputs/hpccinf.txt": ("1500 ", "200 ")},
    "lammps": {"inputs/in.melt": ("0 16 0 16 0 16", "0 8 0 8 0 8")},
    "pgbench": {"pgbench.toml": ('"--seconds", "5"', '"--seconds", "1"')},
    "ph": {
        "inputs/si-scf.in": ("4 4 4 1 1 1", "2 2 2 1 1 1"),
        "inputs/si-ph.in": ("1d-14", "1d-10"),
    },
    "rules": {"rules.toml": ('" 8 8 8 1 1 1"', '" 4 4 4 1 1 1"')},
}
"""For examples whose default takes many seconds: what is smaller in which file."""


def example(folder, name):
    """Return the name of an example, or of a copy in this folder with a smaller problem."""
    if name not in SMALLER:
        return name
    shutil.copy(STUDIES / f"{name}.toml", folder)
    for needed in ("inputs", "programs"):
        shutil.copytree(STUDIES / needed, folder / needed)
    for file, (shipped, smaller) in SMALLER[name].items():
        text = (folder / file).read_text(encoding="utf-8")
        assert text.count(shipped) == 1
        (folder / file).write_text(text.replace(shipped, smaller), encoding="utf-8")
    return f"./{name}.toml"


@pytest.mark.parametrize(
    ("name", "metric"),
    [
        pytest.param("stream", "bandwidth", marks=GCC),
        pytest.param("flags", "steps_s", marks=GCC),
        pytest.param("hpl", "gflops", marks=HPCC),
        pytest.param("pgbench", "tps", marks=POSTGRES),
        pytest.param("redis", "rate", marks=REDIS),
        pytest.param("nginx", "rate", marks=NGINX),
        pytest.param("checkpoint", "time_s"),
        pytest.param("fusion", "exchange_s", marks=TORCH),
        pytest.param("gromacs", "ns_per_day", marks=GROMACS),
        pytest.param("lammps", "loop_s", marks=LAMMPS),
        pytest.param("cp2k", "cp2k_s", marks=CP2K),
        pytest.param("nwchem", "elapsed_s", marks=NWCHEM),
        pytest.param("fftw", "speed", marks=FFTW),
        pytest.param("ph", "elapsed_s", marks=ESPRESSO),
        pytest.param("cp", "elapsed_s", marks=ESPRESSO),
        pytest.param("rules", "elapsed_s", marks=ESPRESSO),
    ],
)
def test_the_default_of_an_example_runs_and_is_read(tmp_path, name, metric):
    ended = autotune(tmp_path, "check", example(tmp_path, name), "--run", "--json")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = json.loads(ended.stdout)["run"]
    assert run["failure"] is None
    assert run["metrics"][0]["name"] == metric
    assert run["metrics"][0]["value"] > 0
    assert name not in {"gromacs", "lammps"} or run["steps"] > 10


@pytest.mark.skipif(
    not BIG_DATA.is_file() or detect() is None,
    reason="no mpirun, or no Python with mpi4py here: AUTOTUNE_BIGDATA_PYTHON",
)
@pytest.mark.parametrize("kernel", ["pca", "kmeans", "svm"])
def test_the_default_of_a_big_data_kernel_runs_and_is_read(tmp_path, kernel):
    path = f"{BIG_DATA.parent}{os.pathsep}{os.environ['PATH']}"
    smaller = ("--set", "space.derived.rows=4000")
    ended = autotune(tmp_path, "check", f"bigdata-{kernel}", "--run", "--json", *smaller, PATH=path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = json.loads(ended.stdout)["run"]
    assert run["failure"] is None
    time_s, input_gb_s = (metric["value"] for metric in run["metrics"])
    assert input_gb_s == pytest.approx(4000 * 250 * 8 / time_s / 1e9, rel=1e-3)


@pytest.mark.skipif(not ENGINES.is_file(), reason="no Python with onnxruntime here: AUTOTUNE_INFERENCE_PYTHON")
@pytest.mark.parametrize("name", ["inference", "ensemble"])
def test_the_default_of_what_serves_models_runs_and_is_read(tmp_path, name):
    path = f"{ENGINES.parent}{os.pathsep}{os.environ['PATH']}"
    # The noisier the machine is, the longer a rate is looked for that it can keep up with.
    patient = ("--set", "budget.run_time_limit_s=600")
    ended = autotune(tmp_path, "check", name, "--run", "--json", *patient, PATH=path)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    run = json.loads(ended.stdout)["run"]
    assert run["failure"] is None
    assert [metric["name"] for metric in run["metrics"]] == ["throughput", "p99_ms", "p50_ms"]
    # A busy machine serves few requests a second: the order of the latencies holds at any speed.
    throughput, p99_ms, p50_ms = (metric["value"] for metric in run["metrics"])
    assert throughput > 0
    assert p99_ms >= p50_ms > 0


@GCC
@pytest.mark.parametrize("name", ["stream", "flags"])
def test_a_short_study_of_an_example(tmp_path, name):
    smaller = {"stream": ["./triad", "100000", "3"], "flags": ["./bodies", "500", "5"]}[name]
    words = (*QUICK, "--set", f"options.argv={json.dumps(smaller)}")
    ended = autotune(tmp_path, "study", name, "--trials", "3", "--json", *words)
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["trials"] >= 3
    runs = json.loads(autotune(tmp_path, "trials", name, "--runs", "--json").stdout)
    assert all(run["job"]["prepare"][0][0] == "gcc" for run in runs)
    script = autotune(tmp_path, "best", name, "--script", "sh").stdout
    assert "\ngcc " in script
    assert this_machine().cores == 1 or "END_OF_INPUT" in script


@GCC
def test_a_flag_that_changes_the_answer_is_a_failure(tmp_path):
    source = '#include <stdio.h>\nint main(void) { printf("answer %d\\n", WHICH); return 0; }\n'
    text = f"""
objective = "command"
[options]
prepare = [["gcc", "-DWHICH={{which}}", "-o", "a", "a.c"]]
argv = ["./a"]
answer = {{ pattern = '^answer (.*)$', tolerance = 0.0 }}
[[options.files]]
name = "a.c"
text = {json.dumps(source)}
delimiters = []
[space.parameters.which]
type = "choice"
values = ["1", "2", "nonsense"]
default = "1"
"""
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "3", *QUICK)
    assert ended.returncode == 0, ended.stderr
    trials = {row["which"]: row for row in json.loads(autotune(tmp_path, "trials", "mine", "--json").stdout)}
    assert trials["1"]["state"] == "complete"
    assert trials["2"]["state"] == "invalid result"
    assert trials["nonsense"]["state"] == "application error"
    assert "error: " in trials["nonsense"]["message"]
    assert "nonsense" in trials["nonsense"]["message"]
