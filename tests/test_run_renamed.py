"""`./run` installs what a study needs by its name or file, also after the study was renamed."""

import subprocess

import pytest

from tests.test_run_script import function


def names_of(venv, *words):
    script = f'venv={venv}\n{function("names_of")}\nnames_of "$@"'
    done = subprocess.run(["sh", "-euc", script, "sh", *words], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.mark.parametrize("renamed", [("--name", "again"), ("--name=again",)])
def test_a_study_that_was_renamed_gets_what_the_one_that_ships_needs(tmp_path, renamed):
    assert {*names_of(tmp_path, "ablate", "again")} == {"ablate", "again"}
    names_of(tmp_path, "study", "inference", *renamed)
    assert "inference" in names_of(tmp_path, "ablate", "again")
    assert "inference" not in names_of(tmp_path, "ablate", "other")


def test_a_study_file_gets_what_its_name_and_its_objective_need(tmp_path):
    assert "llm" in names_of(tmp_path, "study", "./studies/llm.toml", "--trials", "2")
    copy = tmp_path / "mine.toml"
    copy.write_text("name = 'llm'  # as copied\nobjective = \"ucx\"\n\n[[options.metrics]]\nname = 'stream'\n")
    found = names_of(tmp_path, "study", copy, "--set", "a=[*]")
    assert {"mine", "llm", "ucx"} <= {*found}
    assert not {"stream", "a=[*]"} & {*found}
    copy.unlink()
    assert "ucx" in names_of(tmp_path, "ablate", "mine")


@pytest.mark.parametrize("name", ["../x", "..", "a/b", ""])
def test_what_is_no_name_is_left_to_autotune(tmp_path, name):
    assert {*names_of(tmp_path, "study", "inference", "--name", name)} == {"study", "inference", "--name"}
    assert list(tmp_path.rglob("*")) == []
