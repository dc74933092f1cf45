"""`autotune study -- ./solve --threads {threads=1..8}`: the study file of a command, written on the way."""

import os
import resource
import shlex
import stat

import pytest

from autotune.planning.study_template import study_file_name
from tests.support.command_line import run_main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "solve").write_text("#!/bin/sh\nexec true\n")
    (tmp_path / "solve").chmod(0o755)
    return tmp_path


def test_the_file_is_written_once_and_used_again(here):
    words = ["study", "--dry-run", "--trials", "2", "--", "./solve", "{n=1,2}"]
    first, again = run_main(*words), run_main(*words)
    assert (first.returncode, again.returncode) == (0, 0), first.stderr
    assert "wrote solve.toml: metrics, answers, limits and more parameters go there" in first.stderr
    assert "wrote" not in again.stderr
    assert "# trial 0: n=1" in first.stdout
    other = run_main("study", "--dry-run", "--", "./solve", "{n=1,2,3}")
    assert other.returncode == 2
    said = "solve.toml is of: ./solve '{n=1,2}'; tune it with autotune study ./solve.toml, or move it away"
    assert said in " ".join(other.stderr.split())


def test_values_that_a_shell_has_perhaps_expanded_are_said_beside_others(here):
    ended = run_main("study", "--dry-run", "--trials", "2", "--", "./solve", "{n=1,2}", "block=64", "128")
    assert "note: perhaps your shell has expanded {block=64,128}; put single quotes around it" in ended.stderr


def test_an_edited_file_is_used_again(here):
    words = ["study", "--dry-run", "--", "./solve", "{n=1,2}"]
    run_main(*words)
    path = here / "solve.toml"
    path.write_text(path.read_text().replace("trials = 20", "trials = 2"))
    again = run_main(*words)
    assert (again.returncode, again.stdout.count("# trial")) == (0, 2), again.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_file_of_another_user_is_not_used(here):
    words = ["study", "--dry-run", "--", "./solve", "{n=1,2}"]
    run_main(*words)
    path = here / "solve.toml"
    path.write_text(path.read_text().replace("# Commands before", 'prepare = [["false"]]\n# Commands before'))
    os.chown(path, 65534, 65534)
    again = run_main(*words)
    assert (again.returncode, again.stdout) == (2, "")
    assert "solve.toml is of another user: read what it runs" in " ".join(again.stderr.split())


@pytest.mark.parametrize("words", [("study", "--dry-run", "--"), ("init", "solve.toml", "--")], ids=" ".join)
def test_a_file_with_a_secret_is_for_this_user_only_and_a_message_does_not_show_it(here, words):
    assert run_main(*words, "./solve", "--token", "open-sesame-1", "{n=1,2}").returncode == 0
    path = here / "solve.toml"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert "open-sesame-1" in path.read_text()
    other = run_main("study", "--dry-run", "--", "./solve", "{n=1,2,3}")
    assert "solve.toml is of: ./solve --token '***' '{n=1,2}'" in " ".join(other.stderr.split())


def test_of_a_file_that_cannot_be_written_nothing_is_left(here):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        ended = run_main("study", "--dry-run", "--", "./solve", "{n=1,2}")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "cannot write solve.toml: File too large" in " ".join(ended.stderr.split())
    assert not (here / "solve.toml").exists()


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python3 -O train.py {n=1,2}", "train"),
        ("/usr/bin/python -m package.tool {n=1,2}", "tool"),
        ("uv run train.py {n=1,2}", "train"),
        ("'./my prog' {n=1,2}", "my-prog"),
        ("./größe {n=1,2}", "groe"),
        ("{n=1..2}", "study"),
        ("N={n=1,2} ./solve mesh.m", "solve"),
        ("mpirun -np {np=1,2} ./solve", "solve"),
    ],
)
def test_the_file_is_named_after_the_program(command, name):
    assert study_file_name(shlex.split(command)) == name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "./solve", "4"], "the command has no values to try"),
        (["--", "./solve", "n=1", "2"], "your shell has expanded {n=1,2}; put single quotes around it: '{n=1,2}'"),
        (["qe", "--", "./solve", "{n=1,2}"], "give one of the two"),
        (["--", "./solve", "{n=1,1}"], "has 1 different values"),
        (["--", "./solve", "{n=1..4}", "{n=1..3}"], "n has values already"),
        (["--", "./solve", "{cores=1..4}"], "cores is a fact of the machine or a word of rules"),
        (["--set", "space.x=3", "--", "./solve", "{n=1,2}"], "unknown key 'x'"),
        ([], "give a study that ships (qe), a study file"),
    ],
)
def test_mistakes_are_said_before_a_file_is_written(here, words, said):
    ended = run_main("study", *words)
    assert ended.returncode == 2
    assert said in " ".join(ended.stderr.replace("│", " ").split())
    assert not (here / "solve.toml").exists()
