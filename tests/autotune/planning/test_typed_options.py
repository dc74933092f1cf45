"""Mistakes in options beside the name of a study: the message names the option, not a line of the study file."""

import json
from pathlib import Path

import pytest

from autotune.cli.study_request import choose
from autotune.errors import ExitCode, StudyFileError
from autotune.planning import check as planning
from tests.support.command_line import invoke

FILE = """
objective = "command"

[options]
argv = ["true", "{x}"]

[space.parameters.x]
type = "integer"
values = [1, 2]
default = 1
"""


def checked(folder: Path, *words: str) -> tuple[list[dict], str]:
    """Return the mistakes that `check` finds with these options, and the text that it prints."""
    path = folder / "mine.toml"
    path.write_text(FILE)
    ended = invoke("check", str(path), *words)
    assert ended.exit_code == ExitCode.USAGE, ended.output
    return json.loads(invoke("check", str(path), "--json", *words).stdout)["mistakes"], ended.output


@pytest.mark.parametrize(
    ("change", "path", "part"),
    [
        ("budget.trials=0", "budget.trials", "must be a whole number from 1 up"),
        ("options.thread=2", "options.thread", "did you mean 'threads'?"),
        ("space.parameters.x.default=3", "space.parameters.x", "default 3 is not one of its values"),
        ("space.parameters.y.low=1", "space.parameters.y.type", "required field missing"),
        ("foo", None, "expected key=value"),
    ],
    ids=["section", "options", "parameter", "new table", "no key"],
)
def test_a_change_that_is_wrong_is_named(tmp_path, change, path, part):
    (mistake,), output = checked(tmp_path, "--set", change)
    assert (mistake["path"], mistake["line"]) == (path, None)
    assert mistake["option"].startswith("--set ")
    assert change in mistake["option"]
    assert output.splitlines()[0] == "command line: 1 mistake"
    assert f"{mistake['option']}: " in output
    assert part in output


def test_mistakes_of_the_file_and_of_an_option_are_told_apart(tmp_path):
    mistakes, output = checked(tmp_path, "--set", "budget.trials=0", "--set", "options.threads=0")
    assert output.splitlines()[0] == "command line: 2 mistakes"
    assert [mistake["option"] for mistake in mistakes] == ["--set budget.trials=0", "--set options.threads=0"]


@pytest.mark.parametrize("study", ["qe", "lammps"])
def test_an_input_that_is_not_there_is_a_mistake_of_the_command_line_whoever_reads_it(study, tmp_path):
    path = str(tmp_path / 'my "own".in')
    ended = invoke("check", study, "--input", path)
    first, second, *_ = ended.output.splitlines()
    assert (ended.exit_code, first) == (ExitCode.USAGE, "command line: 1 mistake")
    assert second.startswith(f"  --input {path}: ")
    with pytest.raises(StudyFileError, match="--input") as caught:
        choose(study, None, path)
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_mistake_in_what_an_own_input_becomes_names_it(tmp_path):
    (tmp_path / "big.in").write_bytes(b"\xff\xfe")
    ended = invoke("check", "lammps", "--input", str(tmp_path / "big.in"))
    assert "command line: 1 mistake" in ended.output
    assert f"--input {tmp_path}/big.in: " in ended.output


def test_a_word_that_an_option_does_not_take_is_refused_in_plain_words():
    ended = invoke("trials", "any", "--format", "t5")
    assert ended.exit_code == ExitCode.USAGE
    assert "Invalid value for '--format': 't5' is not one of 'csv', 'kernel-tuner', 't4'" in ended.output


def test_a_wrong_table_is_not_printed_as_python_writes_it(tmp_path):
    (mistake,), _ = checked(tmp_path, "--set", 'inputs=[{name="a.b"}, {name="c"}, {name="a-b"}]')
    assert mistake["message"].endswith("these are alike: a.b, a-b")


@pytest.mark.parametrize("study", ["nwchem", "pgbench", "hpl"])
def test_a_study_that_ships_does_not_warn_its_user_of_itself(study, monkeypatch):
    monkeypatch.setattr(planning, "missing_programs", lambda options: [])
    found = invoke("check", study)
    assert found.exit_code == ExitCode.OK, found.output
    assert "warning" not in found.output
    own = invoke("check", study, "--set", "options.unused=[]")
    assert "warning" in own.output, "its options are the user's now"
