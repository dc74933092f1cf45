import json
from pathlib import Path

import pytest

from autotune.errors import ImportFileError, StorageError
from autotune.storage.measurement_store import MeasurementStore
from tests.support.command_line import invoke

OUTPUTS = Path(__file__).parents[2] / "objectives" / "outputs"
ROWS = """
program = "solver"
source = "my notes"
machine = "cluster"
parameters = ["np"]
[[metrics]]
name = "wall_s"
unit = "s"
kind = "time"
[workload]
name = "small"
"""


@pytest.fixture
def storage(tmp_path):
    return str(tmp_path / "autotune.db")


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.toml"
    path.write_text(f"{ROWS}\n[[rows]]\nnp = 1\nwall_s = 3.0\n[[rows]]\nnp = 2\n", encoding="utf-8")
    return str(path)


def run_import(*words):
    return invoke("storage", "import", *words)


def test_what_was_found_is_said_and_kept(storage, rows):
    ended = run_import(rows, "--storage", storage)
    assert ended.exit_code == 0, ended.output
    assert "1 measurement (1 value)" in ended.stdout
    assert "wall_s of solver on cluster, small" in ended.stdout
    assert "left out: 1 x neither a value, nor a bound, nor a failure: row 1" in ended.stdout
    assert "1 new, 0 changed, 0 were there already" in ended.stdout
    assert "only the name of this machine is known" in ended.stderr
    assert "0 new, 0 changed, 1 were there already" in run_import(rows, "--storage", storage).stdout
    (found,) = MeasurementStore.read(f"sqlite:///{storage}").measurements()
    assert (found.value, found.setting.source) == (3.0, "my notes")


def test_frameworks_on_one_machine_are_settings_of_their_own(tmp_path, storage):
    path = tmp_path / "rows.toml"
    rows = "".join(
        f'[[rows]]\nnp = {n}\nwall_s = {n}.5\nused = "{name}"\n' for name in ("vllm", "sglang") for n in (1, 2)
    )
    path.write_text(f'{ROWS}\n[workload.fact_columns]\nframework = "used"\n{rows}', encoding="utf-8")
    said = run_import(str(path), "--storage", storage, "--dry-run").stdout
    assert "  2 configurations: wall_s of solver on cluster, small, framework vllm\n" in said
    assert "  2 configurations: wall_s of solver on cluster, small, framework sglang\n" in said
    found = json.loads(run_import(str(path), "--storage", storage, "--dry-run", "--json").stdout)
    assert [one["installation"] for one in found["settings"]] == [{"framework": "vllm"}, {"framework": "sglang"}]


def test_a_dry_run_touches_nothing(storage, rows):
    ended = run_import(rows, "--storage", storage, "--dry-run")
    assert ended.exit_code == 0
    assert "nothing was imported" in ended.stdout
    assert not Path(storage).exists()


@pytest.mark.slow
def test_json_for_other_programs(storage):
    said = json.loads(run_import(str(OUTPUTS), "--machine", "gadi", "--storage", storage, "--json").stdout)
    assert said["rows"] == said["new"] == said["values"] + said["bounds"] + said["failures"]
    assert said["unknown_machines"] == []
    assert {setting["metric"] for setting in said["settings"]} == {"wall_s", "cpu_s"}
    listed = json.loads(run_import("--list", "--storage", storage, "--json").stdout)
    assert [row["rows"] for row in listed if not row["shipped"]] == [said["rows"]]
    assert any(row["shipped"] for row in listed)


def test_a_source_is_listed_and_taken_back(storage, rows):
    run_import(rows, "--storage", storage)
    assert "my notes" in run_import("--list", "--storage", storage).stdout
    assert "removed 1 measurements of my notes" in run_import("--remove", "my notes", "--storage", storage).stdout
    assert "my notes" not in run_import("--list", "--storage", storage).stdout
    ended = run_import("--remove", "my notes", "--storage", storage)
    assert isinstance(ended.exception, ImportFileError)


def test_without_a_storage_only_what_ships_is_listed(storage):
    assert "ships with autotune" in run_import("--list", "--storage", storage).stdout
    assert not Path(storage).exists()


@pytest.mark.parametrize("words", [(), ("--list", "--remove", "x"), ("rows.toml", "--list")])
def test_one_thing_at_a_time(words):
    assert run_import(*words).exit_code == 2


def test_nothing_to_import_is_an_error_with_the_reasons(tmp_path, storage):
    path = tmp_path / "rows.toml"
    path.write_text(f"{ROWS}\n[[rows]]\nnp = 1\nwall_s = ''\n", encoding="utf-8")
    ended = run_import(str(path), "--storage", storage)
    assert isinstance(ended.exception, ImportFileError)
    assert "left out: 1 x neither" in str(ended.exception)
    assert not Path(storage).exists()


@pytest.mark.parametrize("name", ["nowhere.csv", "nowhere.toml", "nowhere"])
def test_a_file_that_is_not_there(name, storage):
    ended = run_import(name, "--storage", storage)
    assert isinstance(ended.exception, ImportFileError)
    assert "No such file" in str(ended.exception)


def test_a_storage_that_is_none(tmp_path, rows):
    path = tmp_path / "text.db"
    path.write_text("a text " * 1000, encoding="utf-8")
    assert isinstance(run_import(rows, "--storage", str(path)).exception, StorageError)
