"""The program of the study `checkpoint`: its answer does not depend on failures and on the place of checkpoints."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.study_programs import loaded

pytestmark = pytest.mark.full

PROGRAM = Path("studies/programs/checkpointed.py").absolute()
SMALL = ("--mb", "1", "--steps", "40", "--restart", "0.01", "--rate", "200")
UNDISTURBED = ("--scheme", "none", "--failures", "0")


def finished(folder, *options, seed=0):
    folder.mkdir(exist_ok=True)
    return subprocess.run(
        [sys.executable, str(PROGRAM), *SMALL, *options],
        cwd=folder,
        env={**os.environ, "AUTOTUNE_SEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


def checksum(said):
    return re.search(r"^checksum (\d+)$", said, re.MULTILINE)[1]


def again(said):
    return int(re.search(r"(\d+) steps again", said)[1])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    return checksum(finished(tmp_path_factory.mktemp("undisturbed"), *UNDISTURBED))


@pytest.mark.parametrize(
    "options",
    [
        ("--scheme", "none"),
        ("--scheme", "naive", "--interval", "0.02"),
        ("--scheme", "naive", "--rule", "young", "--compress", "1"),
        ("--scheme", "levels", "--level", "memory", "--interval", "0.01", "--flush-every", "2"),
        ("--scheme", "levels", "--level", "local", "--rule", "daly", "--background", "1", "--compress", "1"),
        ("--scheme", "levels", "--level", "partner", "--interval", "0.01", "--flush-every", "1", "--background", "1"),
    ],
    ids=lambda options: "-".join(word for word in options if not word.startswith("--")),
)
def test_no_failure_changes_the_answer(tmp_path, undisturbed, options):
    said = finished(tmp_path / "here", "--between", "0.08", "--failures", "6", "--node-share", "0.5", *options, seed=3)
    assert "failure at" in said
    assert checksum(said) == undisturbed


def failures(said):
    return re.findall(r"failure at (.*)", said)


def test_the_same_seed_gives_the_same_failures_whatever_is_done_about_them(tmp_path):
    often = ("--between", "0.05", "--failures", "3", "--steps", "200")
    naive = failures(finished(tmp_path / "naive", *often, "--interval", "0.02", seed=7))
    levels = failures(finished(tmp_path / "levels", *often, "--scheme", "levels", "--interval", "0.02", seed=7))
    shorter = min(len(naive), len(levels))
    assert shorter > 0
    assert naive[:shorter] == levels[:shorter]
    assert failures(finished(tmp_path / "other", *often, "--interval", "0.02", seed=8)) != naive


# One failure after 0.47 s, in a program that computes for a second or more: long after it has started.
ONCE = ("--between", "0.3", "--failures", "1", "--steps", "800")


def test_without_checkpoints_everything_is_made_again_and_with_them_little(tmp_path):
    alone = (*ONCE, "--node-share", "0")
    none = finished(tmp_path / "none", *alone, "--scheme", "none", seed=6)
    levels = finished(tmp_path / "levels", *alone, "--scheme", "levels", "--interval", "0.005", seed=6)
    assert failures(none) == failures(levels) == ["0.47 s: rank 0"]
    assert again(levels) < again(none)


def test_a_lost_node_costs_what_only_it_had_and_a_partner_saves_it(tmp_path):
    rarely = (*ONCE, "--node-share", "1", "--scheme", "levels", "--interval", "0.005", "--flush-every", "1000")
    memory = finished(tmp_path / "memory", *rarely, "--level", "memory", seed=6)
    partner = finished(tmp_path / "partner", *rarely, "--level", "partner", seed=6)
    assert "and its node" in memory
    assert again(partner) < again(memory)


def test_every_nth_checkpoint_is_that_of_the_whole_job(monkeypatch):
    monkeypatch.syspath_prepend(PROGRAM.parent)
    program = loaded("checkpointed")
    store = SimpleNamespace(steps=set, put=lambda *_: None)
    places = SimpleNamespace(newest=lambda: 0, file_system=[store], memory=[store])
    # Three were made before it was started again.
    shared = program.SharedState(1, [], places, [0.3, 3.0])
    asked = SimpleNamespace(scheme="levels", level="memory", flush_every=4)
    rank, flushed = program.Rank(asked, 0, places, shared), []
    monkeypatch.setattr(rank, "_flush", lambda step, _: flushed.append(step))
    for step in range(5, 10):
        rank._save(step, b"")
    assert flushed == [5, 9]


def test_a_fixed_interval_begins_when_the_job_does(tmp_path):
    finished(tmp_path / "here", "--scheme", "levels", "--level", "local", "--interval", "100", "--failures", "0")
    assert not list((tmp_path / "here").glob("local/*/*"))


def test_a_rank_that_fails_by_itself_is_no_failure_that_was_drawn(tmp_path):
    (tmp_path / "local").symlink_to("/proc")  # where files cannot be created
    options = ("--scheme", "levels", "--level", "local", "--interval", "0", "--between", "1000", "--failures", "3")
    ended = subprocess.run(
        [sys.executable, str(PROGRAM), *SMALL, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 1
    assert "error: a rank ended by itself" in ended.stderr
    assert "failure at" not in ended.stdout


def test_checkpoints_of_another_job_are_not_gone_on_from(tmp_path):
    finished(tmp_path / "here", "--interval", "0.001", "--failures", "0")
    with pytest.raises(subprocess.CalledProcessError) as refused:
        finished(tmp_path / "here", "--interval", "0.001", "--failures", "0")
    assert refused.value.stderr == "error: there are checkpoints of another job here: begin in an empty folder\n"


def test_a_copy_at_another_node_is_there_when_it_has_come_over_the_link(monkeypatch):
    checkpoint_stores, waits = loaded("checkpoint_stores"), []
    there = checkpoint_stores.FarMemory(1000.0, writers=2)
    monkeypatch.setattr(checkpoint_stores.time, "sleep", lambda seconds: waits.append((seconds, there.steps())))
    there.put(7, b"x" * 500, 0)
    ((seconds, before),) = waits
    assert seconds == pytest.approx(1.0, abs=0.2)
    assert 7 not in before
    assert there.get(7) == b"x" * 500


def test_a_copy_at_another_node_comes_back_over_the_link(monkeypatch):
    checkpoint_stores, waits = loaded("checkpoint_stores"), []
    monkeypatch.setattr(checkpoint_stores.time, "sleep", waits.append)
    copy, mail = checkpoint_stores.PartnerMemory(1000.0), checkpoint_stores.FarMemory(1000.0)
    for there in (copy, mail):
        there.put(7, b"x" * 500, 0)
    waits.clear()
    assert copy.get(7) == mail.get(7) == b"x" * 500
    # Rank 0 already has what was sent to it; the checkpoint at its partner must be fetched.
    assert waits == [pytest.approx(0.5, abs=0.2)]


@pytest.fixture
def slow(tmp_path, monkeypatch):
    """Return a disk of 1 kB a second that two write to at once and four read from, and what happened in each wait."""
    checkpoint_stores, waits = loaded("checkpoint_stores"), []
    disk = checkpoint_stores.SlowDisk(tmp_path / "file-system", 1000.0, 2, 4, compress=False)
    monkeypatch.setattr(checkpoint_stores.time, "sleep", lambda seconds: waits.append((seconds, disk.steps())))
    return disk, waits


def test_a_checkpoint_is_there_when_all_of_it_has_arrived_at_the_slow_disk(slow):
    disk, waits = slow
    disk.put(7, b"x" * 500, 0)
    ((seconds, there),) = waits
    assert seconds == pytest.approx(1.0, abs=0.2)
    assert 7 not in there
    assert 7 in disk.steps()


def test_to_read_from_the_slow_disk_takes_its_time_too(slow):
    disk, waits = slow
    disk.put(7, b"x" * 500, 0)
    assert disk.get(7) == b"x" * 500
    assert waits[1][0] == pytest.approx(2.0, abs=0.2)
