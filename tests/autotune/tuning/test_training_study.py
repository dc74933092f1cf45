"""Studies of a training script from end to end."""

import json
import random
from pathlib import Path

import pytest

from tests.support.quick_training import TrainingStudy, kill_once, nothing_left
from tests.support.warm import autotune

pytestmark = [pytest.mark.slow, pytest.mark.cores(1)]
INSTANTS = 2


def finished(folder: Path, **options) -> TrainingStudy:
    folder.mkdir()
    study = TrainingStudy(folder, **options)
    study.write()
    assert study.start().wait(300) == 0, study.log
    return study


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> TrainingStudy:
    return finished(tmp_path_factory.mktemp("training") / "undisturbed")


def shown(study: TrainingStudy) -> dict:
    return json.loads(autotune(study.folder, "best", "mine", "--json").stdout)


def test_trainings_go_on_from_their_checkpoints_and_no_step_is_made_twice(undisturbed):
    assert set(undisturbed.trained().values()) == {1}
    found = shown(undisturbed)
    assert found["steps"]["trained"] == sum(undisturbed.trained().values())
    assert found["steps"]["trained"] < found["steps"]["whole"] == 9 * 12
    assert found["trials"] == 12
    assert found["verdict"]["pairs"]
    assert not list((undisturbed.folder / "autotune-runs" / "mine" / "checkpoints").glob("*/*"))


@pytest.mark.full
def test_killed_at_random_instants_it_ends_with_the_same_brackets(tmp_path, undisturbed):
    study = TrainingStudy(tmp_path)
    study.write()
    rng = random.Random("training")
    for _ in range(INSTANTS):
        kill_once(study, rng)
        assert nothing_left(study) == []
    session = study.start()
    assert session.wait(300) == 0, study.log
    assert study.outcome() == undisturbed.outcome()
    # A killed segment resumes from its checkpoint, which is written before its step is reported.
    assert max(study.trained().values()) <= 1 + INSTANTS
    assert sum(study.trained().values()) <= sum(undisturbed.trained().values()) + 2 * INSTANTS


@pytest.mark.full
def test_median_rule_comes_to_an_end(tmp_path):
    study = finished(tmp_path / "median", trials=6, rule='rule = "median"')
    reached = {steps for _, steps in study.outcome()}
    assert 9 in reached
    assert shown(study)["trials"] == 6
