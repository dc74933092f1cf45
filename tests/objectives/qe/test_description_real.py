"""The description of an input against the dry run of the pw.x that is here."""

import shutil
from pathlib import Path

import pytest

from launchers import STDERR, STDOUT
from launchers.local import local_launcher
from launchers.run import run
from objectives.base import Output, PlanError
from objectives.qe import pseudo
from objectives.qe.deck import Deck
from objectives.qe.options import SHIPPED_INPUTS
from objectives.qe.plan import plan
from tests.objectives.qe.described_inputs import INPUTS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not shutil.which("pw.x"), reason="no pw.x here")]
MACHINE = {"cores": 2, "nodes": 1, "cores_per_node": 2, "sockets": 1, "memory_bytes": 2**33, "described": True}
OTHERS = ("fcc metal", "hexagonal, with a fractional translation", "molecule at Gamma, ultrasoft", "ibrav -5")


def run_job(job):
    status = run(local_launcher(), job)
    text = [(job.folder / name).read_text(errors="replace") for name in (STDOUT, STDERR)]
    return Output(text[0], text[1], status, job.folder)


@pytest.mark.parametrize("name", [*SHIPPED_INPUTS, *OTHERS])
def test_the_facts_are_equal(name, tmp_path, monkeypatch):
    path = name
    if name in OTHERS:
        path = str(tmp_path / "pw.in")
        Path(path).write_text(INPUTS[name][0])
    names = Deck(Path(path).read_text()).pseudopotentials if name in OTHERS else ()
    if pseudo.locate(names, [pseudo.SYSTEM_FOLDER])[1]:
        pytest.skip("its pseudopotentials are not here")
    try:
        truth = plan({"input": path}, machine=MACHINE, run_job=run_job, folder=tmp_path / "dry")
    except PlanError as error:
        pytest.skip(f"it cannot be run here: {error}")
    monkeypatch.setenv("PATH", str(tmp_path))
    found = plan({"input": path}, machine=MACHINE | {"nothing_runs": True}, run_job=run_job, folder=tmp_path / "not")
    assert found.facts == {name: value for name, value in truth.facts.items() if name not in truth.installation}
    assert found.parameters == truth.parameters
