"""Two tuners on one study in a PostgreSQL, each with a core of its own."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from tests.support.awk_study import STUDY, brief
from tests.support.warm import autotune

pytestmark = [pytest.mark.full, pytest.mark.cores, pytest.mark.timeout(400)]

TRIALS = 12
DEFAULT, MOST_PAIRS = 0, 3
NAPS = brief(STUDY).replace('"awk", "BEGIN', '"sh", "-c", "sleep 0.4; echo {x} >> launches.log; echo took {x}", "BEGIN')


@pytest.fixture
def folders(tmp_path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("two tuners on one host need two cores")
    found = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "mine.toml").write_text(NAPS.replace("launches.log", str(tmp_path / "launches.log")))
        found.append(folder)
    return found


def start(folder, url, number):
    core = sorted(os.sched_getaffinity(0))[number]
    command = [sys.executable, "-m", "autotune", "study", "./mine.toml", "--trials", str(TRIALS), "--cores", str(core)]
    with (folder / "said.log").open("wb") as log:
        environment = os.environ | {"AUTOTUNE_STORAGE": url}
        return subprocess.Popen(command, cwd=folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment)


def said(folder):
    return (folder / "said.log").read_text()


def table(folder, what, url):
    return json.loads(autotune(folder, what, "mine", "--json", AUTOTUNE_STORAGE=url).stdout)


def check_whole(folder, url):
    trials = table(folder, "trials", url)
    assert len(trials) == TRIALS
    assert "running" not in {row["state"] for row in trials}
    assert len({(row["x"], row.get("y")) for row in trials}) == TRIALS
    runs = table(folder, "runs", url)
    assert len({(run["trial"], run["started"]) for run in runs}) == len(runs)
    return runs


def test_two_tuners_share_the_trials_and_one_compares_the_winner(folders, postgresql):
    one, two = folders
    tuners = [start(folder, postgresql, number) for number, folder in enumerate(folders)]
    assert [tuner.wait(300) for tuner in tuners] == [0, 0], said(one) + said(two)
    runs = check_whole(one, postgresql)
    for folder in folders:
        assert "trial " in said(folder)
        assert "verdict: " in said(folder) or "compared with the default by" in said(folder)
    # The second to end compares once more only where it found a better one meanwhile.
    pairs = Counter(run["trial"] for run in runs if run["series"] and run["trial"] != DEFAULT)
    assert 0 < max(pairs.values()) <= MOST_PAIRS, said(one) + said(two)
    made = Counter(line for line in (one.parent / "launches.log").read_text().split())
    assert sum(made.values()) >= TRIALS


def test_what_a_killed_tuner_had_in_flight_is_done_by_the_other(folders, postgresql):
    one, two = folders
    tuners = [start(folder, postgresql, number) for number, folder in enumerate(folders)]
    deadline = time.monotonic() + 120
    while said(one).count("trial ") + said(two).count("trial ") < 5:
        assert time.monotonic() < deadline, said(one) + said(two)
        time.sleep(0.05)
    victim, other = (0, 1) if "trial " in said(one) else (1, 0)
    tuners[victim].send_signal(signal.SIGKILL)
    tuners[victim].wait()
    assert tuners[other].wait(300) == 0, said(folders[other])
    check_whole(folders[other], postgresql)
