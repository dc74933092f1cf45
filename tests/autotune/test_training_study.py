"""Studies of a training script from end to end; the script needs nothing but Python, and trains by arithmetic."""

import json
import random
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.autotune.chaos import ChaosStudy, kill_once, nothing_left

pytestmark = [pytest.mark.real, pytest.mark.timeout(900)]
INSTANTS = 2
SCRIPT = """
import json, os, pathlib, sys, time
x, folder = float(sys.argv[1]), os.environ.get("AUTOTUNE_CHECKPOINT")
kept = pathlib.Path(folder, "step") if folder else None
first = int(kept.read_text()) if kept and kept.exists() else 0
log = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
def tell(step):
    print(json.dumps({"step": step, "score": (1 - 0.7**step) / (1 + abs(x - 70)), "x": x}), flush=True)
for step in range(first + 1, int(os.environ["AUTOTUNE_STEPS"]) + 1):
    time.sleep(0.03)
    os.write(log, f"{sys.argv[1]} {step} {folder is None}\\n".encode())
    if kept:
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.with_suffix(".new").write_text(str(step))
        kept.with_suffix(".new").replace(kept)
    tell(step)
if first >= int(os.environ["AUTOTUNE_STEPS"]):
    tell(first)
"""
STUDY = """
objective = "training"

[options]
argv = ["{python}", "-I", "-S", "{folder}/train.py", "{{x}}", "{folder}/steps.log"]
metric = {{ name = "score" }}

[stopping]
max_steps = 9
{rule}

[budget]
trials = {trials}

[verdict]
candidates = 1
pairs = 3
max_pairs = 3
rounds = 2
confidence = 0.75

[space.parameters.x]
type = "integer"
low = 1
high = 1000
default = 1
"""


@dataclass(frozen=True)
class TrainingStudy(ChaosStudy):
    """A study of a training script in a folder of its own."""

    trials: int = 12
    rule: str = ""

    def write(self, *, mpi: bool = False) -> None:
        assert not mpi
        (self.folder / "train.py").write_text(SCRIPT, encoding="utf-8")
        text = STUDY.format(folder=self.folder, python=sys.executable, trials=self.trials, rule=self.rule)
        (self.folder / "mine.toml").write_text(text, encoding="utf-8")

    def outcome(self) -> dict[tuple[object, object], object]:
        """Return what became of every trial: (number, x) -> steps."""
        return {(row["trial"], row["x"]): row.get("steps") for row in self.said("trials")}

    def trained(self) -> Counter[tuple[str, str]]:
        """Return how often each step of each configuration was trained in tuning."""
        path = self.folder / "steps.log"
        lines = [line.split() for line in path.read_text().splitlines()] if path.exists() else []
        return Counter((x, step) for x, step, confirming in lines if confirming == "False")


def finished(folder: Path, **options) -> TrainingStudy:
    folder.mkdir()
    study = TrainingStudy(folder, **options)
    study.write()
    assert study.start().wait(300) == 0, (folder / "session.log").read_text()
    return study


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> TrainingStudy:
    return finished(tmp_path_factory.mktemp("training") / "undisturbed")


def shown(study: TrainingStudy) -> dict:
    command = [sys.executable, "-m", "autotune", "show", "mine", "--json"]
    return json.loads(subprocess.run(command, cwd=study.folder, capture_output=True, text=True, check=True).stdout)


def test_trainings_go_on_from_their_checkpoints_and_no_step_is_made_twice(undisturbed):
    assert set(undisturbed.trained().values()) == {1}
    found = shown(undisturbed)
    assert found["steps"]["trained"] == sum(undisturbed.trained().values())
    assert found["steps"]["trained"] < found["steps"]["whole"] == 9 * 12
    assert found["trials"] == 12
    assert found["verdict"]["pairs"]
    assert not list((undisturbed.folder / "autotune-runs" / "mine" / "checkpoints").iterdir())


def test_killed_at_random_instants_it_ends_with_the_same_brackets(tmp_path, undisturbed):
    study = TrainingStudy(tmp_path)
    study.write()
    rng = random.Random("training")
    for _ in range(INSTANTS):
        kill_once(study, "coordinator", rng)
        assert nothing_left(study) == []
    session = study.start()
    assert session.wait(300) == 0, (tmp_path / "session.log").read_text()
    assert study.outcome() == undisturbed.outcome()
    # A killed leg goes on from its checkpoint, which is written before a step is told.
    assert max(study.trained().values()) <= 1 + INSTANTS
    assert sum(study.trained().values()) <= sum(undisturbed.trained().values()) + 2 * INSTANTS


@pytest.mark.parametrize("rule", ["asha", "median", "none"])
def test_other_rules_come_to_an_end(tmp_path, rule):
    study = finished(tmp_path / rule, trials=6, rule=f'rule = "{rule}"')
    reached = set(study.outcome().values())
    assert 9 in reached
    assert shown(study)["trials"] == 6


def test_an_objective_without_steps_cannot_be_stopped_at_one(tmp_path):
    (tmp_path / "mine.toml").write_text(
        'objective = "command"\n[options]\nargv = ["true"]\n[stopping]\nmax_steps = 9\n'
        '[space.parameters.x]\ntype = "integer"\nlow = 1\nhigh = 3\ndefault = 1\n'
    )
    command = [sys.executable, "-m", "autotune", "study", "./mine.toml", "--dry-run"]
    ended = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "cannot be stopped at a step @ stopping" in ended.stderr
