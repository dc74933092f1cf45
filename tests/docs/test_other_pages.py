"""Examples on the pages about machines, replays, imported measurements and ask-and-tell are valid and complete."""

import json
import re
from dataclasses import fields

from typer.testing import CliRunner

from autotune.cli.app import app
from autotune.client import LeasedRun
from autotune.machines.description import load, sections
from autotune.machines.facts import fact_name
from autotune.performance.measurements.mapping import MappingFile, MetricSection, WorkloadSection
from tests.docs.page import Page

MACHINES = Page.read("docs/machines.md").text
REPLAY = Page.read("docs/replay.md").text
IMPORT = Page.read("docs/import.md").text


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


def test_the_study_file_of_the_replay_document(tmp_path, monkeypatch):
    (example,) = re.findall(r"```toml\n(.*?)```", REPLAY, re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    (tmp_path / "runs.csv").write_text(
        "np,npool,blas,wall_s,why\n2,1,,3.1,\n2,2,,2.5,\n2,1,openblas,2.0,\n1,1,,,out of memory\n", encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    ended = CliRunner().invoke(app, ["check", "./mine.toml", "--space", "--json"])
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    assert found["size"] == 4
    assert found["default"] == {"np": 2, "npool": 1}


def test_the_mapping_of_the_import_document_has_every_key():
    (example,) = re.findall(r"```toml\n(.*?)```", IMPORT, re.DOTALL)
    for model in (MappingFile, MetricSection, WorkloadSection):
        assert set(model.model_fields) <= set(re.findall(r"\b[a-z_]+\b", example)) | {"rows"}


def test_the_answer_to_ask_has_every_key():
    (example,) = (block.text for block in Page.read("docs/ask-tell.md").blocks if block.language == "json")
    assert set(json.loads(example)) == {field.name for field in fields(LeasedRun)}
