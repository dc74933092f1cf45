import subprocess
import sys
from pathlib import Path

import pytest

from objectives import registry
from objectives.base import PlanError


def make(name, options):
    return registry.plan(name, options, machine={"cores": 2}, run_job=lambda job: None, folder=Path("/nowhere"))


def test_finds_an_objective_by_name():
    assert make("command", {"argv": [sys.executable]}).objective.metrics[0].name == "elapsed_s"


def test_an_unknown_name_gets_a_suggestion():
    with pytest.raises(
        PlanError, match=r"no objective is called 'comand' \(did you mean 'command'\?\); known: qe, comm"
    ):
        make("comand", {})


def test_errors_of_the_objective_come_through():
    with pytest.raises(PlanError, match="did you mean 'input'"):
        make("qe", {"inptu": "tio2"})


def test_importing_the_registry_is_cheap():
    code = "import sys, objectives.registry; sys.exit(any(m.startswith('objectives.qe') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
