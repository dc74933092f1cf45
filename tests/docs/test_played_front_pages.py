"""The commands of the README and of the pages that it leads to run."""

import re
import shlex
from pathlib import Path

import pytest

from autotune.errors import ExitCode
from tests.docs.commandline import autotune, warm_autotune
from tests.docs.front_pages import COMMANDS, words_of
from tests.support.quick_study import QUICK
from tests.support.silicon import silicon

pytestmark = [pytest.mark.full, pytest.mark.cores]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder after the README's first command, with fewer trials and, for time, a smaller problem."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "myprogram").write_text("#!/bin/sh\nexec sleep 0.0$(($2 + 1))\n", encoding="utf-8")
    (folder / "myprogram").chmod(0o755)
    assert autotune(folder, ["init", "--", "./myprogram", "--threads", "4"]).returncode == 0
    (folder / "my.in").write_text(silicon(), encoding="utf-8")
    ended = autotune(folder, ["study", "qe", "--input", "my.in", "--name", "qe", "--trials", "3", "--verbose", *QUICK])
    assert ended.returncode == 0, ended.stderr
    assert "(the default configuration)" in ended.stderr
    assert "trial 2: " in ended.stderr
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_first_pages(folder, command):
    _, *words = shlex.split(command)
    if words[0] == "init":
        words.insert(1, "--force")
    if words[0] == "ablate":
        words += ["--rounds", "3"]
    if words[0] == "study":
        words += [*QUICK, "--trials", "1" if "--input" in words else "4"]
    if words[0] == "sweep":
        words += ["--repeats", "1"]
    if words[0] == "watch":
        words += ["--pairs", "3"]
    if words[0] == "rightsize":
        words += ["--input", "my.in"]  # the study that is called qe here is of it, not of the shipped input
    ended = (autotune if command in words_of("README.md") else warm_autotune)(folder, words)
    if words[0] == "watch" and ended.returncode == ExitCode.USAGE:
        # Three pairs of runs beside other tests do not always prove a gain; docs/how-to/watch.md has one to watch.
        assert "no winner to watch" in ended.stderr
        return
    if words[0] == "watch" and ended.returncode == ExitCode.CHANGED:
        # Or the machine is another one by now than in those three pairs: the watch has seen that.
        assert re.search(r"^check 1, .*: trial \d", ended.stdout, re.MULTILINE), ended.stdout
        return
    expected = 1 if "--configuration" in words else 0
    assert ended.returncode == expected, ended.stderr
    page = "studies.html" if words[:3] == ["report", "qe", "replay"] else "qe.html"
    written = words[words.index("--output") + 1] if "--output" in words else page
    assert ended.stdout or (words[0] == "report" and f"report: {written}" in ended.stderr)
