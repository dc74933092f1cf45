"""Studies of UCX from end to end, as a user types them, at a small size, with both benchmarks."""

import json
import shutil
import sqlite3
import sys
from pathlib import Path

import pytest

from tests.support.warm import autotune

pytestmark = [
    pytest.mark.full,
    pytest.mark.cores,
    pytest.mark.skipif(not shutil.which("ucx_perftest"), reason="no ucx_perftest here: apt-get install ucx-utils"),
]
SHORT = ("repeats.max_runs=1", "repeats.warm_up_runs=0", "repeats.baseline_runs=1", "repeats.caps=false")
# A gain has to be found every time, or there is nothing to take apart: the slow setting is the default here.
VERDICT = ("verdict.pairs=3", "verdict.max_pairs=3", "verdict.candidates=1", "verdict.confidence=0.75")
STUDIES = {
    "perftest": (
        "options.benchmark=perftest",
        "options.message_bytes=[1048576]",
        "options.iterations=1",
        'options.only=["UCX_TLS", "UCX_RNDV_THRESH"]',
    ),
    "merge": ("options.benchmark=merge", "options.iterations=3", "options.warm_up=1", 'options.only=["UCXPY_*"]'),
}

# The benchmark makes no difference to these.
ONE = pytest.mark.parametrize("studied", ["perftest"], indirect=True)


def has_ucxx() -> bool:
    python = Path(sys.prefix) / "share" / "autotune" / "ucx" / "bin" / "python"
    return python.exists()


@pytest.fixture(scope="module", params=STUDIES)
def studied(request, tmp_path_factory):
    if request.param == "merge" and not has_ucxx():
        pytest.skip("no Python with ucxx here: ./run study ucx makes one")
    folder = tmp_path_factory.mktemp(request.param)
    changes = [word for change in (*STUDIES[request.param], *SHORT, *VERDICT) for word in ("--set", change)]
    ended = autotune(folder, "study", "ucx", "--trials", "4", "--json", *changes)
    assert ended.returncode == 0, ended.stderr
    return folder, json.loads(ended.stdout), ended.stderr, changes


def test_a_study_ends_with_every_trial_measured(studied):
    _, found, said, _ = studied
    assert found["trials"] == 4
    assert found["failures"] == {}
    assert found["default"]["configuration"] == {}
    assert "(the default configuration)" in said


def test_every_value_was_accepted_by_ucx(studied):
    folder, *_ = studied
    texts = [path.read_text(errors="replace") for path in (folder / "autotune-runs").rglob("std*")]
    assert len(texts) > 8
    assert not [text for text in texts if "Invalid" in text or "invalid value" in text.lower()]


def test_the_winner_is_compared_on_the_other_size_too(studied):
    _, found, *_ = studied
    if not found["verdict"] or not found["verdict"]["significant"]:
        assert found["inputs"] == {}
        return
    assert found["inputs"]["large"]["pairs"]


def runs(folder: Path) -> int:
    with sqlite3.connect(folder / "autotune.db") as database:
        (count,) = database.execute("select count(*) from autotune_runs").fetchone()
        return count


@ONE
def test_the_same_command_again_runs_nothing(studied):
    folder, found, _, changes = studied
    before = runs(folder)
    again = autotune(folder, "study", "ucx", "--trials", "4", "--json", *changes)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout) == found
    assert runs(folder) == before


@ONE
def test_the_winner_can_be_taken_apart_and_drawn(studied):
    folder, found, *_ = studied
    ended = autotune(folder, "ablate", "ucx", "--rounds", "3", "--picture", "bars.svg")
    assert ended.returncode == 0, ended.stderr
    if found["best"]["configuration"]:
        assert "default" in ended.stdout
        assert (folder / "bars.svg").read_text().startswith("<?xml")
