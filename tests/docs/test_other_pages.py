"""The pages on machines, replays, imported measurements and predictions: their commands run, their files work."""

import json
import re
import shlex
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from autotune.cli.app import app
from autotune.machines.description import load, sections
from autotune.machines.facts import fact_name
from autotune.performance.measurements.mapping import MappingFile, MetricSection, WorkloadSection
from autotune.storage.measurement_store import MeasurementStore
from tests.docs.commandline import warm_autotune as autotune
from tests.docs.page import ROOT

pytestmark = pytest.mark.slow

MACHINES = (ROOT / "docs" / "machines.md").read_text(encoding="utf-8")
REPLAY = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
IMPORT = (ROOT / "docs" / "import.md").read_text(encoding="utf-8")
PREDICTION = (ROOT / "docs" / "prediction.md").read_text(encoding="utf-8")
MACHINE_COMMANDS = re.findall(r"^    autotune (machine.*?)(?:\s{2,}#.*)?$", MACHINES, re.MULTILINE)
IMPORT_COMMANDS = re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", IMPORT, re.MULTILINE)
PREDICTIONS = re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", PREDICTION, re.MULTILINE)


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
