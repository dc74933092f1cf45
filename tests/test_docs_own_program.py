"""What the guide to one's own program says is true: its commands run, in their order, and its study file works."""

import re
import shlex
import tomllib

import pytest

from autotune import studyfile
from objectives.commandoptions import CommandOptions, FileOptions
from tests.test_docs import QUICK, REFERENCE, ROOT, autotune

GUIDE = (ROOT / "docs" / "own-program.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    autotune (.*?)(?:\s{2,}#.*)?$", GUIDE, re.MULTILINE)


@pytest.mark.timeout(900)
def test_the_commands_of_the_guide(tmp_path):
    assert [words.split()[0] for words in COMMANDS] == [
        "init",
        "check",
        "check",
        "study",
        "best",
        "best",
        "check",
        "study",
    ]
    packed = tmp_path / "packed"
    packed.write_bytes(b"autotune " * 20_000)
    for command in COMMANDS:
        words = shlex.split(command.replace("/usr/share/common-licenses/GPL-3", str(packed)))
        if words[:2] == ["study", "./pack.toml"]:
            words += QUICK
        ended = autotune(tmp_path, words)
        if "flags" in words and ended.returncode == 3:
            assert "gcc" in ended.stderr  # not on this machine
            continue
        assert ended.returncode == 0, (command, ended.stderr)
        assert ended.stdout


def test_the_study_file_of_the_guide(tmp_path):
    (example,) = re.findall(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    (tmp_path / "mine.toml").write_text(example, encoding="utf-8")
    ended = autotune(tmp_path, ["check", "./mine.toml", "--run"])
    assert ended.returncode == 0, ended.stderr
    assert "work: 163 steps" in ended.stdout
    assert "sum: 55" in ended.stdout


def test_the_guide_names_every_example_and_what_ships_is_there():
    for name in ("stream", "flags", "hpl", "pgbench"):
        assert f"| `{name}` |" in GUIDE
        text = studyfile.catalogue()[name].read_text(encoding="utf-8")
        assert text.startswith("#")
        for file in tomllib.loads(text)["options"].get("files", []):
            assert (ROOT / "studies" / file["template"]).is_file()


def test_the_reference_names_every_key_of_a_command():
    described = set(re.findall(r"`([a-z_]+)`", REFERENCE))
    assert {*CommandOptions.model_fields, *FileOptions.model_fields} <= described
