"""`./run` gets what studies need by their names: those of a suite, and those that were given another name."""

import subprocess

import pytest

from autotune.studyfile.suite import load_suite, suites
from tests.test_run_script import RUN, function


def members_of(*words):
    script = f'root={RUN.parent}\n{function("members_of")}\nmembers_of "$@"'
    done = subprocess.run(["sh", "-uc", script, "sh", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_studies_of_a_suite_that_ships_are_known_by_their_names():
    for name in suites():
        assert members_of("suite", name, "--trials", "3") == [member.study for member in load_suite(name).members]


def test_those_of_an_own_suite_file_are_known_and_no_other_words_of_it(tmp_path):
    own = tmp_path / "mine.toml"
    own.write_text('description = "no qe here"\n[suite]\nmembers = [\n    "hpl",\n    { study = "fftw" },\n]\n')
    assert members_of("suite", str(own)) == ["hpl", "fftw"]
    assert members_of("suite", "nothing", str(tmp_path / "nothing.toml")) == []


def originals_of(venv, *words):
    script = f'venv={venv}\n{function("originals_of")}\noriginals_of "$@"'
    done = subprocess.run(["sh", "-euc", script, "sh", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("renamed", [("--name", "again"), ("--name=again",)])
def test_a_study_that_was_renamed_gets_what_the_one_that_ships_needs(tmp_path, renamed):
    assert originals_of(tmp_path, "ablate", "again") == []
    originals_of(tmp_path, "study", "inference", *renamed)
    assert "inference" in originals_of(tmp_path, "ablate", "again")
    assert originals_of(tmp_path, "ablate", "other") == []


@pytest.mark.parametrize("name", ["../x", "..", "a/b", ""])
def test_what_is_no_name_is_left_to_autotune(tmp_path, name):
    assert originals_of(tmp_path, "study", "inference", "--name", name) == []
    assert list(tmp_path.rglob("*")) == []
