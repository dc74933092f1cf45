"""Completion proposes studies, quickly, and says nothing where it cannot."""

import shlex
from contextlib import chdir

import optuna
import pytest

from autotune import studyfile
from autotune.cli.completion import study_files
from autotune.storage.study_store import StudyStore
from autotune.storage.tables import stored_names
from tests.autotune.cli.test_startup import HELP, imported
from tests.support.command_line import invoke
from tests.support.fakes import definition, small_space


def asked(line):
    """Return the environment in which bash asks for the last word of a command line."""
    words = shlex.split(line) + ([""] if line.endswith(" ") else [])
    return {
        "_AUTOTUNE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
    }


def completed(folder, line, **environment):
    """Return what bash would propose for the last word of a command line."""
    with chdir(folder):
        ended = invoke(**asked(line), **environment)
    assert (ended.exit_code, ended.stderr) == (0, "")
    return ended.stdout.split()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("studies")
    for storage, name in (("autotune.db", "paper"), ("autotune.db", "papers-2"), ("other.db", "elsewhere")):
        StudyStore.create(f"sqlite:///{found / storage}", name, definition(small_space()))
    (found / "broken.db").write_text("no storage", encoding="utf-8")
    (found / "mine.toml").touch()
    (found / "own").mkdir()
    (found / "own" / "theirs.toml").touch()
    return found


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("autotune best ", ["paper", "papers-2"]),
        ("autotune best papers", ["papers-2"]),
        ("autotune trials --runs --storage other.db ", ["elsewhere"]),
        ("autotune trials --storage broken.db ", []),
        ("autotune storage label --storage nowhere.db ", []),
        ("autotune report --storage mysql://nobody@nowhere/none ", []),
        ("autotune study mi", ["mine.toml"]),
        ("autotune check ./m", ["./mine.toml"]),
        ("autotune study own/", ["own/theirs.toml"]),
        ("autotune study nowhere/", []),
        ("autotune check q", ["qe"]),
        ("autotune report --references ", ["summit", "summit-dev", "mine.toml"]),
        ("autotune st", ["study", "studies", "storage"]),
        ("autotune storage re", ["rename", "reset", "reread"]),
        ("autotune storage rename pap", ["paper", "papers-2"]),
        ("autotune serve t", ["token"]),
        ("autotune serve --po", ["--port"]),
        ("autotune best --scr", ["--script"]),
        ("autotune best --script p", ["pbs"]),
    ],
)
def test_a_word_is_completed(folder, line, proposed):
    assert completed(folder, line) == proposed


def test_the_storage_may_come_from_the_environment(folder):
    assert completed(folder, "autotune best ", AUTOTUNE_STORAGE="other.db") == ["elsewhere"]


@pytest.mark.parametrize("line", ["autotune best paper", "autotune study m", "autotune b"])
def test_nothing_is_made_and_nothing_heavy_is_imported(folder, line):
    before = sorted(folder.iterdir())
    assert not imported(folder, **asked(line)) & HELP
    assert sorted(folder.iterdir()) == before


def test_every_study_that_ships_is_proposed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert study_files("") == sorted(studyfile.catalogue())


def test_names_are_those_of_our_studies(address):
    optuna.create_study(storage=address, study_name="another program's")
    StudyStore.create(address, "mine", definition(small_space()))
    assert stored_names(address) == ["mine"]


def test_the_script_that_a_shell_reads_is_shown(monkeypatch):
    # Typer would otherwise look for the shell among the processes that started this one.
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    script = invoke("--show-completion", "bash").stdout
    assert "complete -o default -F _autotune_completion autotune" in script
