"""A suite of real runs, from end to end: what it says is what its studies say, and it is resumed after a kill."""

import json
import signal
import subprocess
import sys

import pytest

from autotune.errors import ExitCode
from autotune.storage.stored_study import stored_study
from tests.support.quick_study import THREE_PAIRS
from tests.support.warm import autotune

pytestmark = [pytest.mark.full, pytest.mark.cores(1)]

STUDY = (
    """
objective = "command"
[options]
argv = ["sleep", "{{seconds}}"]
[space.parameters.seconds]
type = "choice"
values = ["0.{low}", "0.1", "0.15"]
default = "0.15"
[budget]
trials = 3
[repeats]
max_runs = 2
"""
    + THREE_PAIRS
)


@pytest.fixture
def folder(tmp_path):
    for name, low in (("short", "01"), ("longer", "05")):
        (tmp_path / f"{name}.toml").write_text(STUDY.format(low=low), encoding="utf-8")
    (tmp_path / "both.toml").write_text('[suite]\nmembers = ["./short.toml", "./longer.toml"]\n', encoding="utf-8")
    return tmp_path


def told(folder, *words):
    ended = autotune(folder, *words, "--json")
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def test_a_suite_that_was_ended_within_a_study_goes_on_there_and_its_figure_is_that_of_their_verdicts(folder):
    tell = folder / "tell"
    tell.write_text('#!/bin/sh\necho "$AUTOTUNE_STUDY $AUTOTUNE_EXIT_CODE $AUTOTUNE_VERDICT" >told.txt\n')
    tell.chmod(0o755)
    url, words = f"sqlite:///{folder / 'autotune.db'}", [sys.executable, "-m", "autotune", "suite", "./both.toml"]
    said: list[str] = []
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as session:
        for line in session.stderr:
            said.append(line)
            # The first run of the second study has ended.
            if line.startswith("trial 0: ") and "study 2 of 2: longer\n" in said:
                session.send_signal(signal.SIGTERM)
    assert session.returncode == ExitCode.INTERRUPTED, said
    assert "the same command goes on from here" in said[-1]
    before = len(stored_study(url, "short").runs())
    found = told(folder, "suite", "./both.toml", "--quiet", "--notify", str(tell))
    assert len(stored_study(url, "short").runs()) == before
    assert (folder / "told.txt").read_text(encoding="utf-8") == f"both 0 {found['sentence']}\n"
    ratios = [told(folder, "best", name)["speed_up"]["ratio"] for name in ("short", "longer")]
    assert found["speed_up"]["ratio"] == pytest.approx((ratios[0] * ratios[1]) ** 0.5)
    assert [member["speed_up"]["ratio"] for member in found["members"]] == ratios
    # A study of the suite is a study: what was tuned there is not tuned again by itself.
    told(folder, "study", "./short.toml", "--quiet")
    assert len(stored_study(url, "short").runs()) == before
