"""`autotune sweep` of a command: no study, no storage."""

import json

import pytest

from tests.support.command_line import run_main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solve").write_text("#!/bin/sh\nexec sleep 0.0$1\n")
    (tmp_path / "solve").chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_the_best_value_is_compared_again_with_the_first_as_often(here):
    ended = run_main("sweep", "--over", "n=9,5,1", "--repeats", "6", "--json", "--", "./solve", "{n}")
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    assert [side["name"] for side in found["sides"]] == ["n=9", "n=5", "n=1"]
    assert found["sides"][2]["command"] == ["./solve", "1"]
    assert (found["compared"], found["ratio"][1] > 1.0) == ("n=1", True)
    counting = [row for row in found["runs"] if row["state"] == "complete"]
    assert [row["fresh"] for row in counting] == [False] * 18 + [True] * 12
    assert not (here / "autotune.db").exists()


def test_two_values_run_as_often_as_asked(here):
    ended = run_main("sweep", "--over", "n=1,2", "--repeats", "2", "--json", "--", "./solve", "{n}")
    counting = [row for row in json.loads(ended.stdout)["runs"] if row["state"] == "complete"]
    assert len(counting) == 4


def test_values_are_drawn_as_bars(here):
    ended = run_main("sweep", "--over", "n=1..3", "--repeats", "1", "--", "./solve", "{n}")
    assert [line.partition(" ")[0] for line in ended.stdout.splitlines()[1:4]] == ["n=1", "n=2", "n=3"]
    assert "█" in ended.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--over", "n=1,2", "--", "./solve", "5"], "{n} must stand in the command"),
        (["--over", "n=1,2", "--", "./solve", "{n}", "{m}"], "{n} must stand in the command"),
        (["--over", "n=1,2", "--storage", "a.db", "--", "./solve", "{n}"], "is for the sweep of a study"),
        (["mine", "--over", "n=1,2", "--", "./solve", "{n}"], "Invalid value for STUDY: is for the sweep of a study"),
        (["--over", "n=1,2"], "give a study, or a command after --"),
    ],
)
def test_mistakes_are_said(here, words, said):
    ended = run_main("sweep", *words)
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.replace("│", " ").split())
