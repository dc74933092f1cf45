"""--on-end: what runs at the end of a session, and what it is told; --quiet."""

import sys

import pytest
import typer

from autotune.cli.at_end import at_end
from autotune.cli.common import displayed
from autotune.errors import BusyError

TELL = (
    "import os; open('told', 'w').write('|'.join(os.environ[f'AUTOTUNE_{name}'] "
    "for name in ('STUDY', 'EXIT_CODE', 'VERDICT'))); print('hello')"
)
COMMAND = f'{sys.executable} -c "{TELL}"'


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_is_told_of_a_good_end_and_prints_nothing_into_the_result(folder, capfd):
    with at_end(COMMAND, "melt") as end:
        end.verdict = "2 times; $(touch no-shell)"
    assert (folder / "told").read_text() == "melt|0|2 times; $(touch no-shell)"
    assert sorted(path.name for path in folder.iterdir()) == ["told"]
    assert capfd.readouterr() == ("", "hello\n")


@pytest.mark.parametrize(
    ("error", "code"), [(BusyError("busy"), 6), (KeyboardInterrupt(), 130), (typer.Exit(130), 130), (ValueError(), 1)]
)
def test_the_command_is_told_of_a_bad_end_too_and_the_error_goes_on(folder, error, code):
    with pytest.raises(type(error)), at_end(COMMAND, "melt"):
        raise error
    assert (folder / "told").read_text() == f"melt|{code}|"


def test_a_command_that_fails_is_told_and_changes_nothing(capfd):
    with at_end("false", "melt"):
        pass
    assert capfd.readouterr().err == "--on-end: false ended with exit code 1\n"


@pytest.mark.parametrize("command", ["", "no-such-command x", "'unbalanced"])
def test_what_is_no_command_is_refused_before_anything_runs(command):
    with pytest.raises(typer.BadParameter), at_end(command, "melt"):
        pytest.fail("it began")


def test_a_quiet_session_shows_nothing_but_how_it_was_stopped(capfd):
    def session():
        with displayed("stopped: go on so", quiet=True) as display:
            display.line("trial 0: 1 s")
            display.waits("waiting")
            raise KeyboardInterrupt

    with pytest.raises(typer.Exit):
        session()
    assert capfd.readouterr() == ("", "stopped: go on so\n")
