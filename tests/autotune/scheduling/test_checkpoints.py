from pathlib import Path

import pytest

from autotune.scheduling.checkpoints import Checkpoints
from launchers import STDERR, STDOUT
from objectives.base import Metric
from objectives.training.objective import TrainingObjective

AUC = Metric("val_auc", "", "maximize")
OBJECTIVE = TrainingObjective(("train",), AUC)


def told(runs: Path, place: str, *steps: int, stream: str = STDOUT) -> None:
    folder = runs / place
    folder.mkdir(parents=True, exist_ok=True)
    (folder / stream).write_text("".join(f'{{"step": {step}, "val_auc": 0.{step}}}\n' for step in steps))


@pytest.mark.parametrize("stream", [STDOUT, STDERR])
def test_the_curve_of_a_killed_leg_is_kept_however_often_it_is_killed(tmp_path, stream):
    found = Checkpoints(tmp_path, "ours")
    assert found.note_start(3, "00003-9", OBJECTIVE, AUC) == ()
    found.note_progress_file(3, stream)
    told(tmp_path, "00003-9", 7, stream=STDOUT if stream == STDERR else STDERR)
    told(tmp_path, "00003-9", 1, 2, stream=stream)
    assert found.note_start(3, "00003-9", OBJECTIVE, AUC) == ((1, 0.1), (2, 0.2))
    told(tmp_path, "00003-9", 3, stream=stream)
    assert found.note_start(3, "00003-9", OBJECTIVE, AUC) == ((1, 0.1), (2, 0.2), (3, 0.3))
    assert found.note_start(3, "00003-27", OBJECTIVE, AUC) == ()


def test_a_program_finds_nothing_in_its_folder_before_its_first_run(tmp_path):
    found = Checkpoints(tmp_path, "ours")
    for run_name in ("00003-9", "00003-27"):
        found.note_start(3, run_name, OBJECTIVE, AUC)
        assert list(found.folder(3).iterdir()) == []


def test_what_another_study_of_the_same_name_left_is_not_taken_up(tmp_path):
    theirs, ours = Checkpoints(tmp_path, "theirs"), Checkpoints(tmp_path, "ours")
    theirs.note_start(1, "00001-9", OBJECTIVE, AUC)
    told(tmp_path, "00001-9", 1, 2)
    assert ours.note_start(1, "00001-9", OBJECTIVE, AUC) == ()
    assert theirs.folder(1) != ours.folder(1)


def test_a_note_that_cannot_be_read_is_no_note(tmp_path):
    found = Checkpoints(tmp_path, "ours")
    found.note_start(1, "00001-9", OBJECTIVE, AUC)
    for text in ("", "[]", '{"leg": "00001-9"}', '{"leg": "00001-9", "curve": [["a"]]}'):
        found.folder(1).with_name("00001.json").write_text(text)
        assert found.note_start(1, "00001-9", OBJECTIVE, AUC) == ()


def test_checkpoints_of_trials_that_will_not_go_on_are_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = Checkpoints(Path("runs"), "ours")
    for trial in (1, 2):
        found.note_start(trial, "x", OBJECTIVE, AUC)
    assert found.folder(1).is_absolute()
    found.sweep([1])
    assert sorted(path.name for path in found.folder(1).parent.iterdir()) == ["00002", "00002.json"]
    found.forget(7)
