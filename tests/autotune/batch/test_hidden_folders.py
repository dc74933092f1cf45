"""A job script for others: it names no folder of the host, stops until they are set, and then runs the winner."""

import os
import subprocess
from dataclasses import replace

import pytest

from autotune.batch import winner_script
from autotune.batch.hidden_folders import HiddenFolders, in_shell, quoted
from autotune.service.redact import each_path
from tests.autotune.batch.test_winner_script import TRIALS, Stored, summary
from tests.autotune.results.test_summary import JOB

SOLVER = """#!/bin/sh
echo "library $LIBRARY"
echo "given $*"
cat input.txt
"""


@pytest.fixture
def host(tmp_path):
    """A folder of the host: a program, its library and its data, and the run that was measured there."""
    there = tmp_path / "secret" / "inner"
    (there / "my bin").mkdir(parents=True)
    program = there / "my bin" / "solver"
    program.write_text(SOLVER)
    program.chmod(0o755)
    return there


def script(host, **hiding):
    run_folder = str(host / "runs" / "0")
    job = JOB | {
        "argv": [str(host / "my bin" / "solver"), "-in", f"{run_folder}/input.txt", f"-I{host}/include/qe"],
        "prepare": [["cp", str(host / "data" / "table.dat"), "."]],
        "setup": [f'. "{host}/modules/init.sh" || exit 1'],
        "environment": {"LIBRARY": f"{host}/blas/fast:{host}/lib/slow:{run_folder}/tmp"},
        "mpi": None,
        "folder": run_folder,
        "files": {"input.txt": f"data = '{host}/data/'\nout = '{run_folder}/out'\nkept: $HOME `date` \\n\nEND\n"},
    }
    run = replace(TRIALS[1].runs[0], job=job)
    return winner_script.script_of(Stored(run), summary(), "sh", **hiding)


def play(text, folder, **variables):
    return subprocess.run(
        ["bash", "-c", text],
        cwd=folder,
        env={"PATH": os.environ["PATH"], **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_it_stops_with_a_sentence_until_the_folders_are_set_and_then_is_the_winner(host, tmp_path):
    (host / "modules").mkdir()
    (host / "modules" / "init.sh").write_text("echo ready\n")
    (host / "data").mkdir()
    (host / "data" / "table.dat").write_text("1 2 3\n")
    true, others = script(host), script(host, hidden=HiddenFolders(each_path))
    assert "secret" in true
    assert not any(word in others for word in ("secret", "inner", "my bin", str(tmp_path)))
    stopped = play(others, tmp_path)
    assert stopped.returncode != 0
    assert "FOLDER_OF_" in stopped.stderr
    assert "the folder of " in stopped.stderr
    assert not (tmp_path / "autotune-qe").exists(), "it went on without"
    folders = {
        "FOLDER_OF_SOLVER": host / "my bin",
        "FOLDER_OF_FAST": host / "blas",
        "FOLDER_OF_SLOW": host / "lib",
        "FOLDER_OF_TABLE_DAT": host / "data",
        "FOLDER_OF_DATA": host,
        "FOLDER_OF_QE": host / "include",
        "FOLDER_OF_INIT_SH": host / "modules",
    }
    once = play(true, tmp_path)
    again = play(others, tmp_path, **{name: str(path) for name, path in folders.items()})
    assert once.returncode == again.returncode == 0, once.stderr + again.stderr
    assert once.stdout == again.stdout
    assert "ready" in once.stdout
    assert "kept: $HOME `date` \\n" in once.stdout
    assert (tmp_path / "autotune-qe" / "table.dat").read_text() == "1 2 3\n"


@pytest.mark.parametrize(
    "line",
    [
        "export X='\0A__/my lib':more",
        'export X="\0A__/my lib":more',
        "export X=\0A__/my\\ lib:more",
        "export X='it is'\\''s '\0A__'/my lib:more'",
    ],
    ids=["single quotes", "double quotes", "none", "after a quote"],
)
def test_a_variable_in_a_line_of_shell_is_expanded_whatever_quotes_it_stands_in(line):
    ended = subprocess.run(
        ["bash", "-c", f'{in_shell(line)}; echo "$X"'], env={"A": "/opt/b"}, capture_output=True, text=True, check=True
    )
    assert ended.stdout.endswith("/opt/b/my lib:more\n")


def test_folders_of_things_of_one_name_are_told_apart_and_a_name_is_no_command():
    hidden = HiddenFolders(each_path)
    job = hidden.job({"folder": "/runs/0", "argv": ["/opt/a/pw.x", "/opt/b/pw.x", "/opt/a/$(touch hit)`x`"]})
    assert len(set(job["argv"])) == 3
    text = "\n".join(hidden.checks(" ".join(quoted(word, "/runs/0") for word in job["argv"])))
    assert "FOLDER_OF_PW_X:?" in text
    assert "FOLDER_OF_PW_X_NO2:?the folder of pw.x}" in text
    assert "`" not in text
    assert "$(" not in text


def test_a_comment_names_no_folder_either():
    assert HiddenFolders(each_path).remark("blas=/opt/secret/fast") == "blas=…/fast"
