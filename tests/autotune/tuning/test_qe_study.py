"""pw.x is tuned under mpirun: a whole small study, interrupted and resumed by the same command."""

import json
import shutil
import signal
import subprocess
import sys

import pytest

from tests.support.quick_study import QUICK
from tests.support.silicon import silicon
from tests.support.warm import autotune

pytestmark = [
    pytest.mark.slow,
    pytest.mark.cores,
    pytest.mark.skipif(not (shutil.which("pw.x") and shutil.which("mpirun")), reason="no pw.x and mpirun here"),
]

STUDY = ["study", "qe", "--input", "my.in", "--name", "si", "--trials", "4", "--verbose", *QUICK]


def test_an_interrupted_study_of_pw_x_resumes_and_ends_with_a_verdict_and_a_script(tmp_path):
    (tmp_path / "my.in").write_text(silicon(), encoding="utf-8")
    command = [sys.executable, "-m", "autotune", *STUDY]
    quiet = {"stdout": subprocess.DEVNULL, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, **quiet) as session:
        for line in session.stderr:
            if line.startswith("trial 0: "):
                session.send_signal(signal.SIGINT)
                break
        session.stderr.read()
    assert session.returncode == 130
    first = json.loads(autotune(tmp_path, "trials", "si", "--runs", "--json").stdout)

    ended = autotune(tmp_path, *STUDY)

    assert ended.returncode == 0, ended.stderr
    assert "trial 0: " not in ended.stderr
    assert "verdict: " in ended.stdout
    runs = json.loads(autotune(tmp_path, "trials", "si", "--runs", "--json").stdout)
    assert runs[: len(first)] == first
    assert {run["job"]["argv"][0].rpartition("/")[2] for run in runs} == {"pw.x"}
    trials = json.loads(autotune(tmp_path, "trials", "si", "--json").stdout)
    assert len(trials) == 4
    assert all(trial["np"] % trial["npool"] == 0 for trial in trials)
    script = autotune(tmp_path, "best", "si", "--script", "sh").stdout
    assert "mpirun" in script
    assert "pw.x" in script
