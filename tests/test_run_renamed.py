"""`./run` installs what a study needs by its name, also after the study was renamed."""

import subprocess

import pytest

from tests.test_run_script import function


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
