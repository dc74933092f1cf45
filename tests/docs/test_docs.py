"""The documentation is true: its commands run, its study file works, its links lead somewhere."""

import re
import shlex
import tomllib
from pathlib import Path

import pytest

from autotune.errors import ExitCode
from spaces.expressions.functions import FUNCTIONS
from tests.docs.commandline import QUICK, autotune, warm_autotune
from tests.docs.page import ROOT
from tests.support.silicon import silicon

pytestmark = pytest.mark.cores

README = (ROOT / "README.md").read_text(encoding="utf-8")
README_LINES = 100
FRONT = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/commands.md", "docs/quantum-espresso.md")
}
"""What a newcomer reads first: the README, and the pages on the same study that it leads to."""
REFERENCE = (ROOT / "docs" / "study-files.md").read_text(encoding="utf-8")
SERVE = "serve"
"""It stays: docs/service.md is played with it."""
COMMANDS = [
    words
    for words in dict.fromkeys(re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", "".join(FRONT.values()), re.MULTILINE))
    if not re.search(r"^cancel|^pilot|--launcher", words)  # those are in test_clusters.py
    and words != SERVE
]
OF_README = set(re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", README, re.MULTILINE))
"""They start from nothing, as those of a user do; others without the seconds that their imports take."""
README_RUN = set(re.findall(r"^    (\./run .*?)(?:\s{2,}#.*)?$", README, re.MULTILINE))
"""They install what they need before they call autotune; CI itself is one of them."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a folder after the README's first command, with fewer trials and, for time, a smaller problem."""
    folder = tmp_path_factory.mktemp("docs")
    (folder / "myprogram").write_text("#!/bin/sh\nexec sleep 0.0$(($2 + 1))\n", encoding="utf-8")
    (folder / "myprogram").chmod(0o755)
    assert autotune(folder, ["init", "--", "./myprogram", "--threads", "4"]).returncode == 0
    (folder / "my.in").write_text(silicon(), encoding="utf-8")
    ended = autotune(folder, ["study", "qe", "--input", "my.in", "--name", "qe", "--trials", "3", *QUICK])
    assert ended.returncode == 0, ended.stderr
    assert "(the default configuration)" in ended.stderr
    assert "trial 2: " in ended.stderr
    return folder


def test_the_readme_is_short_enough_to_be_read():
    assert len(README.splitlines()) <= README_LINES


def test_the_first_two_commands_are_those_of_the_readme():
    assert re.findall(r"^    (\./run .*?)\s+#", README, re.MULTILINE) == ["./run study qe --trials 50", "./run test"]


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_first_pages(folder, command):
    words = shlex.split(command)
    if words[0] == "init":
        words.insert(1, "--force")
    if words[0] == "ablate":
        words += ["--rounds", "3"]
    if words[0] == "study":
        words += [*QUICK, "--trials", "1" if "--input" in words else "4"]
    if words[0] == "sweep":
        words += ["--repeats", "1"]
    if words[0] == "rightsize":
        words += ["--input", "my.in"]  # the study that is called qe here is of it, not of the shipped input
    ended = (autotune if command in OF_README else warm_autotune)(folder, words)
    if words[0] == "watch" and ended.returncode == ExitCode.USAGE:
        # Three pairs of runs beside other tests do not always prove a gain; docs/how-to/watch.md has one to watch.
        assert "no winner to watch" in ended.stderr
        return
    if words[0] == "watch" and ended.returncode == ExitCode.CHANGED:
        # Or the machine is another one by now than in those three pairs: the watch has seen that.
        assert re.search(r"^check 1, .*: trial \d", ended.stdout, re.MULTILINE), ended.stdout
        return
    expected = 1 if "--check" in words else 0
    assert ended.returncode == expected, ended.stderr
    written = words[words.index("--output") + 1] if "--output" in words else "qe.html"
    assert ended.stdout or (words[0] == "report" and f"report: {written}" in ended.stderr)


def test_the_reference_names_every_function():
    assert set(FUNCTIONS) <= set(re.findall(r"`(\w+)`", REFERENCE))


def test_the_shipped_study_is_commented_and_valid_toml():
    text = (ROOT / "studies" / "qe.toml").read_text(encoding="utf-8")
    assert text.startswith("#")
    assert tomllib.loads(text)["objective"] == "qe"
