"""The documentation is true: its commands run, its study file works, its links lead somewhere."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from autotune.cli.app import app
from autotune.errors import ExitCode
from autotune.machines.description import load, sections
from autotune.machines.facts import fact_name
from autotune.performance.measurements.mapping import MappingFile, MetricSection, WorkloadSection
from autotune.storage.measurement_store import MeasurementStore
from spaces.expressions.functions import FUNCTIONS

pytestmark = pytest.mark.cores

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
README_LINES = 100
FRONT = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/commands.md", "docs/quantum-espresso.md")
}
"""What a newcomer reads first: the README, and the pages on the same study that it leads to."""
REFERENCE = (ROOT / "docs" / "study-files.md").read_text(encoding="utf-8")
MACHINES = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
REPLAY = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
IMPORT = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
PREDICTION = (ROOT / "docs" / "prediction.md").read_text(encoding="utf-8")
QUICK = [
    word
    for change in (
        "verdict.confidence=0.75",
        "verdict.pairs=3",
        "verdict.max_pairs=3",
        "verdict.rounds=2",
        "verdict.candidates=2",
        "repeats.max_runs=2",
        "repeats.warm_up_runs=0",
    )
    for word in ("--set", change)
]
SERVE = "serve"
"""It stays: docs/service.md is played with it."""
COMMANDS = [
    words
    for words in dict.fromkeys(re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", "".join(FRONT.values()), re.MULTILINE))
    if not re.search(r"^cancel|^pilot|--launcher", words)  # those are in test_clusters.py
    and words != SERVE
]
README_RUN = set(re.findall(r"^    (\./run .*?)(?:\s{2,}#.*)?$", README, re.MULTILINE))
"""They install what they need before they call autotune; CI itself is one of them."""
MACHINE_COMMANDS = re.findall(r"^    autotune (machine.*?)(?:\s{2,}#.*)?$", MACHINES, re.MULTILINE)
IMPORT_COMMANDS = re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", IMPORT, re.MULTILINE)
PREDICTIONS = re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", PREDICTION, re.MULTILINE)


def autotune(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "autotune", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder after the README's first command, with fewer trials and, for time, a smaller problem."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "myprogram").write_text("#!/bin/sh\nexec sleep 0.0$(($2 + 1))\n", encoding="utf-8")
    (folder / "myprogram").chmod(0o755)
    assert autotune(folder, ["init", "--", "./myprogram", "--threads", "4"]).returncode == 0
    tio2 = (ROOT / "studies" / "inputs" / "tio2.in").read_text(encoding="utf-8")
    for whole, less in (("ecutwfc = 25", "ecutwfc = 12"), ("ecutrho = 200", "ecutrho = 60"), ("3 3 4 0", "2 2 2 0")):
        assert whole in tio2
        tio2 = tio2.replace(whole, less)
    (folder / "my.in").write_text(tio2, encoding="utf-8")
    ended = autotune(folder, ["study", "qe", "--input", "my.in", "--name", "qe", "--trials", "3", *QUICK])
    assert ended.returncode == 0, ended.stderr
    assert "(the default configuration)" in ended.stderr
    assert "trial 2: " in ended.stderr
    return folder


def test_the_readme_is_short_enough_to_be_read():
    assert len(README.splitlines()) <= README_LINES


def test_the_first_two_commands_are_those_of_the_readme():
    assert re.findall(r"^    (\./run .*?)\s+#", README, re.MULTILINE) == ["./run study qe --trials 50", "./run test"]


@pytest.mark.real
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_first_pages(folder, command):
    words = shlex.split(command)
    if words[0] == "init":
        words.insert(1, "--force")
    if words[0] == "ablate":
        words += ["--rounds", "3"]
    if "--input" in words:
        words += [*QUICK, "--trials", "1"]
    elif words[0] == "study":
        words += ["--trials", "4"]
    if words[0] == "sweep":
        words += ["--repeats", "1"]
    if words[0] == "rightsize":
        words += ["--input", "my.in"]  # the study that is called qe here is of it, not of the shipped input
    ended = autotune(folder, words)
    if words[0] == "watch" and ended.returncode == ExitCode.USAGE:
        # Three pairs of runs beside other tests do not always prove a gain; docs/how-to/watch.md has one to watch.
        assert "no winner to watch" in ended.stderr
        return
    expected = 1 if "--check" in words else 0
    assert ended.returncode == expected, ended.stderr
    written = words[words.index("--output") + 1] if "--output" in words else "qe.html"
    assert ended.stdout or (words[0] == "report" and f"report: {written}" in ended.stderr)


@pytest.mark.real
def test_the_commands_of_the_document_on_machines(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert len(MACHINE_COMMANDS) == 6
    for command in MACHINE_COMMANDS:
        ended = autotune(tmp_path, shlex.split(command))
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout or "--output" in command


def test_the_description_in_the_document_on_machines(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", MACHINES, re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    assert load(tmp_path / "mine.toml").for_nodes(2)["cores"] == 256


def test_the_document_on_machines_names_every_fact():
    rows = re.findall(r"^\| `(\w+)` \| (?:`([\w.]+)`)? ?\|", MACHINES, re.MULTILINE)
    paths = [f"{section}.{key}" for section, model in sections().items() for key in model.model_fields]
    facts = {name: path for path in paths if (name := fact_name(path))}
    assert dict(rows) == {"nodes": "", "cores": "", **facts}
    assert {path.partition(".")[2] for path in paths if not fact_name(path)} <= set(re.findall(r"`(\w+)`", MACHINES))


def test_the_study_file_of_the_replay_document(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", REPLAY, re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    (tmp_path / "runs.csv").write_text(
        "np,npool,blas,wall_s,why\n2,1,,3.1,\n2,2,,2.5,\n2,1,openblas,2.0,\n1,1,,,out of memory\n", encoding="utf-8"
    )
    ended = autotune(tmp_path, ["space", "./mine.toml", "--json"])
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert found["size"] == 4
    assert found["default"] == {"np": 2, "npool": 1}


@pytest.mark.timeout(600)
def test_the_commands_and_the_mapping_of_the_import_document(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", IMPORT, re.DOTALL)
    for model in (MappingFile, MetricSection, WorkloadSection):
        assert set(model.model_fields) <= set(re.findall(r"\b[a-z_]+\b", example)) | {"rows"}
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    (tmp_path / "runs.csv").write_text(
        "ranks,pools,nodes,minutes,at least,why,repeats,input,cutoff,h_psi,fftw\n"
        "4,2,1,1.5,,,5,CeO2,50,60,20\n8,2,1,,2,,1,CeO2,50,,\n",
        encoding="utf-8",
    )
    rows = re.sub(r"^(csv|nodes_column|failure|runs|bound|parts) .*\n", "", example, flags=re.MULTILINE)
    (tmp_path / "rows.toml").write_text(
        f"{rows}\n[[rows]]\nranks = 4\npools = 2\nminutes = 1.0\ninput = 'CeO2'\ncutoff = 50\n", encoding="utf-8"
    )
    entry = {"x": 1, "time": 2.0}
    cache = {"device_name": "A100", "kernel_name": "k", "tune_params_keys": ["x"], "cache": {"1": entry}}
    (tmp_path / "cache.json").write_text(json.dumps(cache), encoding="utf-8")
    shutil.copytree(ROOT / "tests" / "objectives" / "outputs", tmp_path / "old-runs")
    assert len(IMPORT_COMMANDS) == 7
    for command in IMPORT_COMMANDS:
        ended = autotune(tmp_path, shlex.split(command))
        assert ended.returncode == 0, ended.stderr
        assert ended.stdout


def test_the_document_on_prediction_has_commands_of_both_kinds():
    kinds = [command.split()[0] for command in PREDICTIONS]
    assert (kinds.count("predict"), kinds.count("model"), len(kinds)) == (6, 2, 8)


@pytest.mark.parametrize("command", [command for command in PREDICTIONS if command.startswith("model")])
def test_a_command_on_the_model(tmp_path, command):
    ended = autotune(tmp_path, shlex.split(command))
    assert ended.returncode == 0, ended.stderr
    assert "data-science" in ended.stdout or "summit" in ended.stdout
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
@pytest.mark.parametrize("command", [command for command in PREDICTIONS if command.startswith("predict")])
def test_a_command_that_predicts(tmp_path, command):
    words = shlex.split(command)
    files = dict(re.findall(r"```toml file=(\S+)\n(.*?)```", PREDICTION, re.DOTALL))
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    ended = autotune(tmp_path, words)
    assert ended.returncode == 0, ended.stderr
    if "--json" in words:
        assert json.loads(ended.stdout)["setting"]["program"] == "qe"
    else:
        assert re.search(r"predicted.*; there are [\d,]+ valid configurations on ", ended.stdout.replace("\n", " "))
    if "--facts" in words:
        assert "np=1200 npool=20" in ended.stdout
    assert {path.name for path in tmp_path.iterdir()} == files.keys()


@pytest.mark.real
def test_the_python_of_the_document_on_prediction(tmp_path):
    (example,) = re.findall(r"```python\n(.*?)```", PREDICTION, re.DOTALL)
    MeasurementStore.create(f"sqlite:///{tmp_path / 'autotune.db'}")
    ended = subprocess.run([sys.executable, "-c", example], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "'npool':" in ended.stdout
    assert "no measurement with less than 115 bands" in ended.stdout


def test_the_document_on_prediction_names_options_that_there_are():
    commands = ("predict", "model", "study", "compare-machines")
    told = "".join(CliRunner().invoke(app, [name, "--help"]).stdout for name in commands)
    named = set(re.findall(r"(?:^    autotune .*?|`)(--[a-z]+[a-z-]*)", PREDICTION, re.MULTILINE))
    assert {"--machine", "--also", "--script", "--warm-start"} <= named
    assert named <= set(re.findall(r"--[a-z]+[a-z-]*", told))


def test_the_reference_names_every_function():
    assert set(FUNCTIONS) <= set(re.findall(r"`(\w+)`", REFERENCE))


def test_the_shipped_study_is_commented_and_valid_toml():
    text = (ROOT / "studies" / "qe.toml").read_text(encoding="utf-8")
    assert text.startswith("#")
    assert tomllib.loads(text)["objective"] == "qe"
