"""Errors name the study file or the command line, whichever has the mistake."""

from copy import deepcopy

import pytest

from autotune.cli.commands.check import read_configuration
from autotune.errors import ExitCode, StudyFileError
from autotune.studyfile.loading import apply_overrides, load
from spaces import Integer, Space

FILE = 'objective = "command"\noptions = { argv = ["true"] }\n[budget]\ntrials = 3\n'


def test_an_error_of_the_command_line_alone_does_not_name_the_file(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE)
    with pytest.raises(StudyFileError) as caught:
        load(tmp_path / "mine.toml", ["budget.trials=-3", "sampler.name=foo"])
    assert str(caught.value).startswith("the command line has errors (--set KEY=VALUE, or the option for the key):")
    assert "mine.toml" not in str(caught.value)
    assert [problem.path for problem in caught.value.problems] == ["budget.trials", "sampler.name"]


def test_errors_of_both_are_told_apart(tmp_path):
    (tmp_path / "mine.toml").write_text(FILE.replace("trials", "trails"))
    with pytest.raises(StudyFileError) as caught:
        load(tmp_path / "mine.toml", ["sampler.name=foo"])
    first, trails, sampler = str(caught.value).splitlines()
    assert "mine.toml" in first
    assert "command line" not in trails
    assert sampler.startswith("  --set sampler.name=foo: ")
    assert "@ sampler.name" in sampler


def test_an_error_of_a_whole_table_is_of_the_command_line_unless_the_file_has_it(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(FILE)
    with pytest.raises(StudyFileError) as caught:
        load(path, ["verdict.rounds=5", "verdict.pairs=3"])
    assert (
        str(caught.value).splitlines()[1].startswith("  --set verdict.pairs=3: a 95% interval needs at least 6 pairs")
    )
    path.write_text(f"{FILE}[verdict]\npairs = 3\n")
    with pytest.raises(StudyFileError, match=r"mine\.toml: 1 error\n  a 95% interval"):
        load(path, ["verdict.rounds=5"])


def test_a_configuration_with_an_unknown_name_is_a_mistake_not_an_invalid_one():
    space = Space([Integer("ranks", (1, 2))])
    assert read_configuration(space, "ranks=2") == {"ranks": 2}
    with pytest.raises(StudyFileError, match=r"no parameter is called 'rank' \(did you mean 'ranks'\?\)") as caught:
        read_configuration(space, "rank=2")
    assert caught.value.exit_code is ExitCode.USAGE


def test_a_file_that_is_nested_very_deep_is_an_error_in_words(tmp_path):
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 5000 + "]" * 5000)
    with pytest.raises(StudyFileError, match="is not a TOML file: it is nested more than 32 deep"):
        load(path)


def test_what_an_input_of_pwx_continues_from_is_found_from_every_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    path = tmp_path / "bands.toml"
    text = 'objective = "qe"\noptions.saved = "{}"\noptions.input = "nscf.in"'
    for given, meant in (("out", f"{tmp_path}/out"), ("/scratch/out", "/scratch/out"), ("~/out", "/home/me/out")):
        path.write_text(text.format(given))
        assert load(path).options["saved"] == meant
    assert load(path, ["options.saved=out"]).options["saved"] == "out"


def test_changes_leave_the_table_that_they_are_made_to_as_it_is():
    table = {"name": "s", "objective": "command", "options": {"argv": ["true"]}, "budget": {"trials": 7}}
    before = deepcopy(table)
    changed = apply_overrides(table, ["budget.trials=9", "budget.workers=2", "options.argv=['false']"], "s")
    assert (changed.budget.trials, changed.budget.workers, changed.options["argv"]) == (9, 2, ["false"])
    assert table == before
