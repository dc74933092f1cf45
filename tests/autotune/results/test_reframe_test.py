"""A ReFrame test of a winner: its reference is the verdict, and it makes and reads checks of `autotune watch`."""

import ast
import os
import shutil
import subprocess
import sys
from math import log, sqrt

import pytest

from autotune.comparison.confirm import confirm
from autotune.errors import AutotuneError
from autotune.results.reframe_test import reframe_test
from autotune.statistics.verdict import Verdict
from autotune.storage.readable_study import VERDICT
from tests.docs.page import Page
from tests.support.contests import DEFAULT, SIMPLE, STUDY, add, manager, new_store, noisy
from tests.support.fakes import SECONDS, PaperExecutor

pytestmark = pytest.mark.full

COMMAND = ("/opt/tools/python", "-m", "autotune")


@pytest.fixture
def store(tmp_path):
    store = new_store(tmp_path)
    add(store, (DEFAULT, 2.0), (SIMPLE, 0.8))
    return store


def attributes(text):
    """Return the class of a test and its plain attributes."""
    (tested,) = (node for node in ast.parse(text).body if isinstance(node, ast.ClassDef))
    plain = (node for node in tested.body if isinstance(node, ast.Assign))
    return tested.name, {node.targets[0].id: ast.literal_eval(node.value) for node in plain}


def test_the_reference_is_the_verdict_and_its_tolerance_the_interval_for_a_few_pairs(store, tmp_path):
    confirm(store, manager(tmp_path, PaperExecutor(noisy())), STUDY)
    name, found = attributes(reframe_test(store, COMMAND, "/data/it's.db"))
    assert name == "AutotunePaper"
    assert found["executable"] == "/opt/tools/python"
    watched = ["watch", "paper", "--storage", "/data/it's.db", "--pairs", "3", "--wait", "--json"]
    assert found["executable_opts"] == ["-m", "autotune", *watched]
    assert found["num_cpus_per_task"] == 8
    verdict = Verdict.from_dict(store.attribute(VERDICT))
    ratio, low, high = verdict.interval(SECONDS)
    reference, lower, upper, unit = found["reference"]["*"]["speed_up"]
    assert (reference, unit) == (pytest.approx(ratio, abs=1e-4), "x")
    assert (1 + lower) * (1 + upper) == pytest.approx(1.0, abs=1e-3)
    # Three pairs are less precise than the verdict's six.
    expected = sqrt((log(high / low) / 2 * sqrt(1 + len(verdict.pairs) / 3)) ** 2 + 0.01**2)
    assert log(1 + upper) == pytest.approx(expected, abs=3e-4)


def test_without_a_winner_there_is_no_test(store):
    with pytest.raises(AutotuneError, match="no verdict yet"):
        reframe_test(store, COMMAND, "/data/autotune.db")


@pytest.mark.cores(1)
@pytest.mark.skipif(
    not shutil.which("reframe"), reason="no reframe (pip install reframe-hpc, in an environment of its own)"
)
def test_a_real_reframe_passes_while_the_winner_wins_and_fails_when_it_does_not(tmp_path):
    for block in Page.read("docs/how-to/watch.md").blocks:
        if "file" in block.attributes:
            (tmp_path / block.attributes["file"]).write_text(block.text)
    environment = {**os.environ, "AUTOTUNE_NOISE": "accept"}

    def ran(*argv):
        return subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)

    autotune = (sys.executable, "-m", "autotune")
    assert ran(*autotune, "study", "./solve.toml", "--trials", "3").returncode == 0
    (tmp_path / "solve_test.py").write_text(ran(*autotune, "watch", "solve", "--reframe").stdout)
    good = ran("reframe", "-c", "solve_test.py", "-r", "--performance-report")
    assert good.returncode == 0, good.stdout
    assert "Ran 1/1 test case(s)" in good.stdout
    program = tmp_path / "solve.awk"
    program.write_text(program.read_text().replace("64 ? 1.0", "64 ? 1.5"))
    bad = ran("reframe", "-c", "solve_test.py", "-r")
    assert bad.returncode == 1
    assert "no longer wins" in bad.stdout or "wins by less" in bad.stdout
