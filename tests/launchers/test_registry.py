"""Batch systems by name: those that ship, and those of other distributions."""

from importlib.metadata import EntryPoint

import pytest

from launchers.batch_systems import registry
from launchers.extensions.entry_points import EntryPointError
from tests.support.distributions import forget, installed

MODULE = """
from dataclasses import replace
from launchers.batch_systems.slurm import SLURM
MINE = replace(SLURM, label="Mine", scheduler=replace(SLURM.scheduler, name="mine"))
NOTHING = 3
"""


@pytest.fixture
def install(monkeypatch, tmp_path):
    yield lambda entry: installed(monkeypatch, tmp_path, "mine", {"mine_batch": MODULE}, {registry.GROUP: entry})
    forget()


def test_entry_point_adds_a_batch_system(install):
    install("mine = mine_batch:MINE")
    assert registry.names()[-1] == "mine"
    assert registry.find_batch_system("mine").label == "Mine"
    assert registry.all_batch_systems()[-1].label == "Mine"


def test_entry_point_cannot_replace_a_batch_system_that_ships(install):
    install("slurm = mine_batch:MINE")
    assert registry.find_batch_system("slurm").label == "Slurm"
    with pytest.raises(EntryPointError, match=r"of mine 1\.0: this name is taken by what ships with autotune"):
        registry.names()


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("mine = mine_batch:MISSING", "cannot be loaded: AttributeError"),
        ("mine = no_such_module:MINE", "No module named 'no_such_module'"),
        ("mine = mine_batch:NOTHING", "must be a launchers.batch_systems.system.BatchSystem, got int"),
        ("other = mine_batch:MINE", "is called 'mine'; the entry point must have the same name"),
    ],
)
def test_broken_entry_point_names_its_distribution(install, entry, says):
    install(entry)
    with pytest.raises(EntryPointError, match="of mine") as caught:
        registry.find_batch_system(entry.partition(" ")[0])
    assert says in str(caught.value)


def test_broken_entry_point_does_not_hide_those_that_ship(install):
    install("mine = no_such_module:MINE")
    assert registry.find_batch_system("slurm").label == "Slurm"
    assert "mine" in registry.names()


def test_broken_entry_point_without_a_distribution_is_refused():
    with pytest.raises(EntryPointError, match="an unknown distribution"):
        registry._load(EntryPoint("mine", "no_such_module:MINE", registry.GROUP))


def test_unknown_name_is_refused():
    with pytest.raises(KeyError):
        registry.find_batch_system("nobody")
