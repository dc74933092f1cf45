"""A real study whose verdict is made by duets: cores, overlap, a session that is killed, and what is refused."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import groupby

import pytest

from tests.support.warm import autotune

pytestmark = [pytest.mark.full, pytest.mark.cores]

STUDY = """
objective = "command"

[options]
argv = ["sh", "-c", "sleep 1.{x}; echo took 1.{x}"]
metrics = [{ name = "took_s", unit = "s", pattern = 'took (\\S+)', kind = "time" }]

[space.parameters.x]
type = "integer"
values = [3, 4]
default = 4

[budget]
trials = 2

[repeats]
max_runs = 1
warm_up_runs = 0
baseline_runs = 1
caps = false

[verdict]
candidates = 1
confidence = 0.75
pairs = 4
max_pairs = 4
mode = "duet"

[noise]
mode = "accept"
"""


@pytest.fixture
def folder(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("a duet needs two cores")
    (tmp_path / "naps.toml").write_text(STUDY)
    return tmp_path


def told(folder, *words):
    ended = autotune(folder, *words, "--json")
    return json.loads(ended.stdout)


def duets(folder):
    runs = sorted(
        (run for run in told(folder, "trials", "naps", "--runs") if run["series"] == "duet:1"), key=lambda r: r["round"]
    )
    return [sorted(both, key=lambda run: run["trial"]) for _, both in groupby(runs, key=lambda run: run["round"])]


def test_the_two_overlap_on_cores_of_their_own_that_are_swapped(folder):
    ended = autotune(folder, "study", "naps.toml", "--quiet")
    assert ended.returncode == 0, ended.stderr
    verdict = told(folder, "best", "naps")["verdict"]
    assert (verdict["mode"], verdict["significant"], len(verdict["pairs"])) == ("duet", True, 4)
    assert "4 duets: pairs of runs side by side" in verdict["sentence"]
    assert 0.0 < verdict["abreast"] <= 1.0
    made = duets(folder)
    cores = [[run["outcome"]["conditions"]["cpus"] for run in both] for both in made]
    assert all(first != second for first, second in cores)
    assert cores[0] == cores[1][::-1] == cores[2]


def test_a_killed_session_leaves_no_half_of_a_duet(folder):
    command = [sys.executable, "-m", "autotune", "study", "naps.toml", "--verbose"]
    with (folder / "said.log").open("wb") as log:
        session = subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    while "duet 2" not in (folder / "said.log").read_text() and session.poll() is None:
        time.sleep(0.02)
    time.sleep(0.1)
    session.send_signal(signal.SIGKILL)
    session.wait()
    before = duets(folder)
    assert [len(both) for both in before] == [2] * len(before)
    ended = autotune(folder, "study", "naps.toml", "--wait", "--quiet")
    assert ended.returncode == 0, ended.stderr
    made = duets(folder)
    assert [len(both) for both in made] == [2] * len(made)
    assert len(told(folder, "best", "naps")["verdict"]["pairs"]) == 4
