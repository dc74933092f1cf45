"""The table of commands says what the commands' modules say; help and completion read nothing but the table."""

import inspect
import re
from importlib import import_module

import pytest
import typer

from autotune import studyfile
from autotune.cli.app import app
from autotune.cli.command_table import COMMANDS
from autotune.cli.study_options import StudyOptions
from tests.support.command_line import invoke

NAMES = [entry.name for entry in COMMANDS]
ALL = [(entry, (entry.name,)) for entry in COMMANDS]
ALL += [(below, (entry.name, below.name)) for entry in COMMANDS for below in entry.commands]
WORDS = [" ".join(words) for _, words in ALL]


def help_of(*words, columns=80):
    return invoke(*words, "--help", COLUMNS=str(columns)).stdout


@pytest.mark.parametrize(("entry", "words"), ALL, ids=WORDS)
def test_the_table_is_in_step_with_the_modules(entry, words):
    if entry.module:
        function = getattr(import_module(f"autotune.cli.commands.{entry.module}"), entry.function)
        assert inspect.getdoc(function).splitlines()[0] == entry.summary
    command = typer.main.get_command(app)
    for word in words:
        command = command.commands[word]
    assert command.name == entry.name
    assert command.help.startswith(entry.summary)


def test_the_help_has_every_command_with_its_whole_summary_on_one_line():
    lines = help_of().splitlines()
    assert max(map(len, lines)) <= 80
    assert not any("..." in line for line in lines if "Usage" not in line)
    for entry in COMMANDS:
        assert any(re.fullmatch(rf"  {entry.name} +{re.escape(entry.summary)}", line) for line in lines), entry.name


def test_commands_are_grouped_in_the_help():
    titles = [line.rstrip(":") for line in help_of().splitlines() if re.fullmatch(r"[A-Z][^:]*:", line)]
    assert titles == ["Options", *dict.fromkeys(entry.group for entry in COMMANDS)]


def test_the_help_lists_at_most_25_commands_and_begins_with_those_of_a_session():
    _, _, listed = help_of().partition("A session:")
    names = re.findall(r"^  ([a-z]+) +\S", listed, re.MULTILINE)
    assert names[:4] == ["init", "check", "study", "best"]
    assert len(names) <= 25


@pytest.mark.parametrize("words", WORDS)
def test_a_commands_help_fits_and_nothing_is_cut_off(words):
    lines = help_of(*words.split()).splitlines()
    assert max(map(len, lines)) <= 80
    assert not any(re.search(r"\w\.\.\.$", line) for line in lines)


def test_a_typo_gets_a_suggestion_and_no_command_is_imported_for_it():
    ended = invoke("stduy")
    assert ended.exit_code == 2
    assert "No such command 'stduy'. Did you mean 'study'?" in ended.output


def test_the_help_of_the_sampler_names_every_sampler():
    (told,) = [option.help for option in StudyOptions.__annotations__["sampler"].__metadata__]
    assert f"{', '.join(studyfile.SAMPLERS)}, optuna:CLASS" in told


@pytest.mark.parametrize("option", ["--runs", "--json"])
def test_the_format_of_another_tuner_excludes_what_it_would_ignore(tmp_path, option):
    (tmp_path / "autotune.db").touch()
    refused = invoke("trials", "mine", "--storage", str(tmp_path / "autotune.db"), "--format", "t4", option)
    assert refused.exit_code == 2
    assert "t4" in refused.output
