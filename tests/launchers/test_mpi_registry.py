"""The registry of MPI start commands, including those of other distributions."""

import pickle

import pytest

from launchers.detect import detect
from launchers.extensions.entry_points import EntryPointError
from launchers.mpi import MpiFlavour, start_command, start_commands
from launchers.mpi.registry import GROUP
from tests.support.distributions import forget, installed

DECLARED = """
import re

from launchers.mpi import MpiStartCommand

FLUX = MpiStartCommand(
    name="Flux run",
    commands=("flux-run-for-tests",),
    version_patterns=(re.compile(r"flux-core (\\d+(?:\\.\\d+)*)"),),
    options=lambda flavour, start: [f"--ntasks={start.mpi.ranks}"],
)
TAKEN = MpiStartCommand("MPICH", ("x",), (), lambda flavour, start: [])
"""


@pytest.fixture(autouse=True)
def _fresh():
    yield
    forget()


@pytest.mark.parametrize("command", start_commands(), ids=str)
def test_each_start_command_is_found_by_name_and_can_be_pickled(command):
    assert start_command(command.name) is command
    flavour = MpiFlavour(command, (4, 1), command.default_path)
    assert pickle.loads(pickle.dumps(flavour)) == flavour


def test_unknown_name_is_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'jsrun'; known: Open MPI, Intel MPI, MPICH, Slurm srun"):
        start_command("jsrun")


def test_entry_point_adds_a_start_command(tmp_path, monkeypatch):
    installed(monkeypatch, tmp_path, "fluxpack", {"fluxrun": DECLARED}, {GROUP: "flux = fluxrun:FLUX"})
    program = tmp_path / "bin" / "flux-run-for-tests"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho flux-core 0.66.0\n")
    program.chmod(0o755)
    found = detect(str(program.parent))
    assert found is not None
    assert (str(found.kind), found.version) == ("Flux run", (0, 66, 0))


@pytest.mark.parametrize(
    ("points_to", "said"),
    [
        ("fluxrun:TAKEN", "'MPICH' is known already"),
        ("fluxrun:re", "must be a launchers.mpi.MpiStartCommand, got module"),
    ],
)
def test_broken_entry_point_is_reported_with_its_distribution(tmp_path, monkeypatch, points_to, said):
    installed(monkeypatch, tmp_path, "fluxpack", {"fluxrun": DECLARED}, {GROUP: f"flux = {points_to}"})
    with pytest.raises(EntryPointError, match=said):
        start_commands()
