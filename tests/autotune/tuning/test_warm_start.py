"""A warm start in a real session: a quick command, and measurements that were imported from other machines."""

import json

import pytest

from autotune.records.measurement import Measured, Setting
from autotune.storage.measurement_store import MeasurementStore
from objectives.base import Metric
from tests.support.awk_study import STUDY, brief
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)

TOOK = Metric("took_s", "s")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "mine.toml").write_text(brief(STUDY), encoding="utf-8")
    rows = []
    for machine in range(4):
        place = Setting("mine", f"machine {machine}", "as here", TOOK, {"cores": 2 + machine}, source="a page")
        rows += [Measured(place, {"x": x}, (1 + (x - 7) ** 2) * (1.0 + machine)) for x in range(1, 41)]
    MeasurementStore.create(f"sqlite:///{tmp_path / 'autotune.db'}").add(rows)
    return tmp_path


def tried(folder, *words):
    ended = autotune(folder, "study", "./mine.toml", *words)
    assert ended.returncode == 0, ended.stderr
    listed = json.loads(autotune(folder, "trials", "mine", "--json").stdout)
    return ended.stderr, [row["x"] for row in sorted(listed, key=lambda row: row["trial"])]


def test_a_study_starts_with_what_other_machines_predict_and_says_so(folder):
    said, values = tried(folder, "--trials", "3")
    assert "warm start: " in said
    assert "tried first" in said
    assert values[:2] == [20, 7]
    shown = autotune(folder, "best", "mine").stdout
    assert "warm start: " in shown
    assert "the first 170.000x" in shown
    again, values = tried(folder, "--trials", "4")
    assert "tried first" not in again
    assert values[:2] == [20, 7]


@pytest.mark.full
def test_it_can_be_done_without(folder):
    said, values = tried(folder, "--trials", "3", "--warm-start", "off")
    assert "warm start" not in said
    assert values[0] == 20
    assert "warm start" not in autotune(folder, "best", "mine").stdout
