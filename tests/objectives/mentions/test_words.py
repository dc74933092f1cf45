"""Words of a command line, and groups of words that are left out together."""

import sys
from pathlib import Path

import pytest

from objectives.base import Context, PlanError
from objectives.command import plan
from objectives.mentions.words import fill_in_words, find_dangling_options
from objectives.training import script

LINE = ["prog", ["--size", "{n}", "{m}"], "-v", ["--fixed", "1"], "{m}"]


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"n": 1, "m": 2}, ("prog", "--size", "1", "2", "-v", "--fixed", "1", "2")),
        ({"n": 1}, ("prog", "-v", "--fixed", "1")),
        ({"m": 2}, ("prog", "-v", "--fixed", "1", "2")),
    ],
)
def test_a_group_comes_and_goes_together(values, line):
    assert fill_in_words(LINE, values) == line


def planned(kind, **options):
    return kind({"argv": [sys.executable], **options}, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def test_groups_in_all_command_lines_of_a_study_file(tmp_path):
    argv = [sys.executable, "-c", ["--y", "{y}"]]
    command = planned(plan, argv=argv, prepare=[["true", ["-m", "{y}"]]])
    assert {mention.path for mention in command.mentions} == {"options.argv.2.1"}
    assert command.identity["command"].endswith("-c [--y {y}]"), "without the group it would be another command"
    job = command.objective.job({}, Context(tmp_path))
    assert (job.argv[1:], job.prepare) == (("-c",), (("true",),))
    job = command.objective.job({"y": 3}, Context(tmp_path))
    assert (job.argv[1:], job.prepare) == (("-c", "--y", "3"), (("true", "-m", "3"),))
    training = planned(script.plan, argv=argv, metric={"name": "loss"})
    assert training.objective.job({}, Context(tmp_path)).argv[1:] == ("-c",)
    assert training.objective.job({"y": 3}, Context(tmp_path)).argv[1:] == ("-c", "--y", "3")


@pytest.mark.parametrize("kind", [plan, script.plan])
@pytest.mark.parametrize(
    ("argv", "path", "message"),
    [
        ([["true"]], "options.argv", "the program comes first"),
        (["true", [["-a"], "b"]], "options.argv.1", "a group of words"),
        (["true", []], "options.argv.1", "a group of words"),
        (["true", 3], "options.argv.1", "must be a word"),
        (["true", ["-a", "{b"]], "options.argv.1.1", "stands alone"),
    ],
)
def test_mistakes_in_groups(kind, argv, path, message):
    with pytest.raises(PlanError) as caught:
        planned(kind, argv=argv, **({} if kind is plan else {"metric": {"name": "loss"}}))
    (problem,) = caught.value.problems
    assert problem.path == path
    assert message in problem.message


@pytest.mark.parametrize(
    ("words", "warned"),
    [
        (["p", "--y", "{y}"], True),
        (["p", "-y", "a{= 2 * y}"], True),
        (["p", ["--y", "{y}"]], False),
        (["p", "--y", "{x}"], False),
        (["p", "--y={y}", "{y}"], False),
        (["p", "-{y}", "{y}"], False),
        (["p", "-O{x}", "{y}"], False),
        (["p", "input", "{y}"], False),
        (["p", "{y}"], False),
    ],
)
def test_an_option_that_could_stand_without_its_value_is_seen(words, warned):
    found = list(find_dangling_options(words, {"y"}))
    assert bool(found) == warned
    assert not found or f'write ["{words[1]}", "{words[2]}"]' in found[0]
