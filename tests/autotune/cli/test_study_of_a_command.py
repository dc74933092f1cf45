"""`autotune study -- ./solve --threads {threads=1..8}`: the study file of a command, written on the way."""

import pytest

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
    assert "solve.toml exists and is of another command: tune it with autotune study ./solve.toml" in other.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "./solve", "4"], "the command has no values to try"),
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
