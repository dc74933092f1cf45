"""`autotune compare`: commands as a user types them, with real processes."""

import csv
import json
import subprocess
import sys

import pytest

from autotune.cli.commands.compare import _own_names
from tests.support.command_line import run_main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AUTOTUNE_NOISE", "accept")
    (tmp_path / "own").write_text("#!/bin/sh\necho energy $1\ncat\ntest $1 != 3 || { echo no luck >&2; exit 3; }\n")
    (tmp_path / "own").chmod(0o755)
    (tmp_path / "folder.csv").mkdir()
    return tmp_path


def compared(*words):
    return run_main("compare", "--runs", "6", *words)


def test_commands_run_where_the_user_stands_and_every_run_is_exported(here):
    (here / "in.txt").write_text("hello")
    ended = compared("--input", "in.txt", "--export", "runs.csv", "--", "./own", "1", "--", "./own", "2")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("1: ./own 1\n2: ./own 2\n\n")
    assert "6 interleaved pairs of runs)" in ended.stdout
    rows = list(csv.DictReader((here / "runs.csv").read_text().splitlines()))
    assert {row["name"] for row in rows} == {"1", "2"}
    assert len([row for row in rows if row["state"] == "complete"]) == 12


def test_commands_may_be_quoted_as_a_whole(here):
    ended = compared("--", "./own 1", "--", "./own 2 > /dev/null")
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith("1: ./own 1\n2: ./own 2\n\n")


@pytest.mark.slow
def test_json_has_the_ratio_and_the_names_of_the_user(here):
    ended = compared("--json", "--names", "old, new", "--prepare", "touch made", "--", "./own", "1", "--", "./own", "2")
    found = json.loads(ended.stdout)
    assert [side["name"] for side in found["sides"]] == ["old", "new"]
    assert found["sides"][1]["command"] == ["./own", "2"]
    middle, low, high = found["ratio"]
    assert low <= middle <= high
    assert (here / "made").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--", "./own", "1", "--", "./own", "3"], 4, "./own 3: ended with exit code 3: no luck\n"),
        (["--input", "/dev/null", "--", "./own", "1", "--", "./own", "2"], 2, "/dev/null is no regular file"),
        (["--relative-tolerance", "0.1", "--", "./own", "1", "--", "./own", "2"], 2, "needs --answer"),
        (["./own 1", "./own 2"], 2, "a command stands after --: autotune compare -- ./solve --threads 2"),
        (["./own", "-1"], 2, "a command stands after --: autotune compare -- ./solve --threads 2"),
        (["--", "./own 1 < in.txt", "--", "./own 2"], 2, "give the standard input as --input in.txt"),
        (["--", "./own 1 | cat", "--", "./own 2"], 2, "has '|'"),
        (["--answer", "power (.*)", "--", "./own", "1", "--", "./own", "2"], 4, "leave out the option `answer`"),
        (
            ["--answer", "energy (.*)", "--", "./own", "1", "--", "./own", "2"],
            4,
            "answer is 2, the reference run's is 1",
        ),
        (["--", "./own", "1", "--", "./none", "2"], 3, "none 2: there is no program"),
        (["--", "./own", "1"], 2, "give two commands or more"),
        (["--", "./own", "1", "--", "sh", "-c", "echo a >&2; echo b >&2; exit 4"], 4, "4: b\nthe lines before on"),
        (["--names", "a", "--", "./own", "1", "--", "./own", "2"], 2, "must have 2 different names"),
        (["--answer", "energy", "--", "./own", "1", "--", "./own", "2"], 2, "has 0 groups"),
        (["--export", "folder.csv", "--", "./own", "1", "--", "./own", "2"], 2, "folder.csv is a folder"),
        (["--export", "runs.txt", "--", "./own", "1", "--", "./own", "2"], 2, "must end in .csv or .json"),
        (
            ["--prepare", "./own 3", "--", "./own", "1", "--", "./own", "2"],
            3,
            "./own 3, which prepares each run, ended",
        ),
    ],
)
def test_mistakes_and_failures_are_said(here, words, code, said):
    ended = compared(*words)
    assert ended.returncode == code
    assert said in " ".join(ended.stderr.replace("│", " ").split()) or said in ended.stderr


@pytest.mark.slow
def test_secrets_of_a_command_reach_only_its_job(here):
    (here / "ask").write_text('#!/bin/sh\ntest "$2" = hunter22 && exit $3\n')
    (here / "ask").chmod(0o755)
    ask = ["./ask", "--token", "hunter22"]
    for last, code in (("0", 0), ("5", 4)):
        for way in ([], ["--json"]):
            ended = compared(*way, "--export", "runs.json", "--", *ask, "0", "--", *ask, last, "--api-key=hunter33")
            assert ended.returncode == code
            assert "***" in ended.stdout + ended.stderr
            assert "hunter" not in ended.stdout + ended.stderr + (here / "runs.json").read_text()


def test_what_was_measured_is_shown_and_exported_before_a_late_failure(here):
    (here / "kept.csv").touch()
    (here / "runs.csv").symlink_to("kept.csv")
    (here / "thrice").write_text("#!/bin/sh\necho >> made\ntest $(wc -l < made) -lt 7\n")
    (here / "thrice").chmod(0o755)
    ended = compared("--prepare", "./thrice", "--export", "runs.csv", "--", "./own", "1", "--", "./own", "2")
    assert ended.returncode == 3
    assert "./thrice, which prepares each run" in ended.stderr
    assert "2 of the 6 pairs of runs that an interval needs" in ended.stdout
    assert len((here / "kept.csv").read_text().splitlines()) == 5
    assert (here / "runs.csv").is_symlink()


def test_the_process_that_has_claimed_a_core_is_named(here, monkeypatch):
    (here / "user").mkdir(mode=0o700)
    monkeypatch.setenv("AUTOTUNE_USER_FOLDER", str(here / "user"))
    hold = (
        "import os, sys; from autotune.execution.core_pool import CoreClaim\n"
        "claim = CoreClaim.claim(os.sched_getaffinity(0), work='study x'); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen([sys.executable, "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        holder.stdout.readline()
        ended = compared("--runs", "1", "--", "./own", "1", "--", "./own", "2")
        holder.stdin.close()
    assert ended.returncode == 0
    assert f"is in use by process {holder.pid} on" in ended.stderr


def test_the_table_fits_a_terminal(here):
    ended = compared("--names", f"{'x' * 24},{'y' * 24}", "--", "./own", "1", "--", "./own", "2")
    table = ended.stdout.splitlines()[3:6]
    assert [line[:1] for line in table] == [" ", "x", "y"]
    assert max(map(len, table)) <= 80


def test_names_are_the_words_in_which_commands_differ():
    words = [["./a", "-n", "4", "-O2"], ["./a", "-n", "4", "-O3"], ["./a", "-n", "4"]]
    assert _own_names(words) == ["-O2", "-O3", "./a"]
    assert _own_names([["x"], ["x"]]) == ["x", "x (2)"]
    assert _own_names([["x", "-v"], ["x", "-v", "-v"], ["x", "-v", "a\n\tb"]]) == ["x", "-v", "a b"]
    assert len(_own_names([["x" * 80, "1"], ["y"]])[0]) == 24
