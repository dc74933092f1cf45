"""A warm start in a real session: a quick command, and measurements that were imported from other machines."""

import json
import sys

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


def test_the_same_command_after_an_upgrade_starts_from_the_earlier_study(tmp_path):
    """Release 2 is fastest at another x than release 1."""
    program = 'BEGIN { d = x - 7; print "took", 1 + d * d }'
    argv = ["awk", "-v", "x={x}", "-f", "solve.awk"]
    files = '[[options.files]]\nname = "solve.awk"\ntemplate = "solve.awk"\ndelimiters = ["@", "@"]\n\n[budget]'
    lines = brief(STUDY).replace("[budget]", files, 1).splitlines()
    lines = [f"argv = {json.dumps(argv)}" if line.startswith("argv") else line for line in lines]
    (tmp_path / "mine.toml").write_text("\n".join(lines), encoding="utf-8")
    (tmp_path / "solve.awk").write_text(program, encoding="utf-8")
    tried(tmp_path, "--trials", "12")
    winner = json.loads(autotune(tmp_path, "best", "mine", "--json").stdout)["best"]["configuration"]
    (tmp_path / "solve.awk").write_text(program.replace("x - 7", "x - 9"), encoding="utf-8")
    notify = f"{sys.executable} -c \"import os; open('told', 'w').write(os.environ['AUTOTUNE_STUDY'])\""
    ended = autotune(tmp_path, "study", "./mine.toml", "--trials", "8", "--notify", notify)
    assert ended.returncode == 0, ended.stderr
    assert "study mine was made before a change (files): this is mine-2" in ended.stderr
    assert ended.stderr.count("machine: ") == 1
    assert "warm start: from study mine, whose winner was" in ended.stderr
    assert (tmp_path / "told").read_text(encoding="utf-8") == "mine-2"
    rows = sorted(json.loads(autotune(tmp_path, "trials", "mine-2", "--json").stdout), key=lambda row: row["trial"])
    assert [rows[0]["x"], rows[1]["x"]] == [20, winner["x"]]
    assert "warm start: from study mine" in autotune(tmp_path, "best", "mine-2").stdout
    again = autotune(tmp_path, "study", "./mine.toml", "--trials", "8")
    assert again.returncode == 0
    assert "this is mine-2" in again.stderr
    assert json.loads(autotune(tmp_path, "storage", "list", "--json").stdout)[-1]["study"] == "mine-2"
    # A name that the user gives is for one study.
    refused = autotune(tmp_path, "study", "./mine.toml", "--name", "mine")
    assert refused.returncode == 5
    assert "study mine-2 is of this program: give that name" in refused.stderr
