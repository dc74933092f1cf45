"""`autotune check` of a training: the script gets a number of steps, and mistakes of the section have their lines."""

from pathlib import Path

import pytest

from tests.autotune.planning.test_check import PYTHON, checked
from tests.support.command_line import invoke

pytestmark = pytest.mark.cores(1)

TRAINING = f"""
objective = "training"

[options]
argv = ["{PYTHON}", "train.py", "{{steps}}", "{{lr}}"]
progress = '\\[ep (\\d+)/\\d+\\].*val-loss = (\\S+)'
metric = "val-loss"

[stopping]
max_steps = 9
min_steps = 2

[space.parameters.lr]
type = "integer"
values = [1, 2, 3]
default = 2

[budget]
trials = 3
"""
SCRIPT = """
import sys
for epoch in range(1, int(sys.argv[1]) + 1):
    print(f"[ep {epoch:03d}/027] | val-loss = {9 - epoch}", flush=True)
"""


def trained(folder: Path, text: str, script: str, monkeypatch) -> tuple[int, dict]:
    monkeypatch.chdir(folder)
    (folder / "train.py").write_text(script)
    return checked(folder, text, "--run")


def test_a_training_script_is_asked_for_some_steps_and_makes_them(tmp_path, monkeypatch):
    code, found = trained(tmp_path, TRAINING, SCRIPT, monkeypatch)
    assert (code, found["warnings"]) == (0, [])
    assert (found["run"]["last_step"], found["run"]["asked_steps"]) == (2, 2)
    assert found["run"]["metrics"][0]["value"] == 7
    assert "train.py 9 2" in found["command"]


def test_a_training_script_that_does_not_stop_where_it_is_asked_to_is_noticed(tmp_path, monkeypatch):
    text = TRAINING.replace('"{steps}"', '"27"')
    code, found = trained(tmp_path, text, SCRIPT, monkeypatch)
    assert code == 0
    assert found["run"]["last_step"] == 3
    assert any("{steps}" in warning for warning in found["warnings"])
    ended = invoke("check", str(tmp_path / "mine.toml"), "--run")
    assert "the program did not stop after step 2 as asked" in ended.stdout


def test_a_training_script_that_counts_from_0_is_noticed(tmp_path, monkeypatch):
    script = SCRIPT.replace("range(1, int(sys.argv[1]) + 1)", "range(int(sys.argv[1]))")
    trained(tmp_path, TRAINING, script, monkeypatch)
    ended = invoke("check", str(tmp_path / "mine.toml"), "--run")
    assert "first_step = 0" in ended.stdout


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[stopping]\nmax_steps = 9\nmin_steps = 2\n", "", "mention {steps}, but no [stopping]"),
        ("parameters.lr", "parameters.seed", "can be called 'seed'"),
        ('"{lr}"', '"{rate}"', "'rate'"),
    ],
)
def test_mistakes_of_a_training(tmp_path, before, after, words):
    code, found = checked(tmp_path, TRAINING.replace(before, after))
    assert code == 2
    assert any(words in problem["message"] for problem in found["mistakes"])


def test_a_parameter_that_a_training_does_not_mention(tmp_path):
    more = '[space.parameters.width]\ntype = "integer"\nvalues = [1, 2]\ndefault = 1\n'
    code, found = checked(tmp_path, TRAINING + more)
    assert code == 0
    assert "parameter 'width' reaches nothing: no option mentions it" in found["warnings"]
