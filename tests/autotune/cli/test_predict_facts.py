"""`autotune predict --facts`: the size of a problem from a file."""

from pathlib import Path

import pytest

from autotune.errors import StudyFileError
from tests.support.command_line import invoke


@pytest.mark.parametrize(
    ("study", "file", "words"),
    [
        ("qe", "nosuch.toml", "--facts nosuch.toml: no such file"),
        ("fftw", "facts.toml", "takes no facts from a file"),
    ],
)
def test_facts_that_nobody_can_use_are_a_mistake_of_the_command_line(tmp_path, monkeypatch, study, file, words):
    monkeypatch.chdir(tmp_path)
    Path("facts.toml").write_text("kpoints = 4\n", encoding="utf-8")
    told = invoke("predict", study, "--facts", file, "--machine", "gadi")
    assert isinstance(told.exception, StudyFileError)
    assert words in str(told.exception)
