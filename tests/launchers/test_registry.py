"""Batch systems by their names: those that ship, and those of other distributions."""

import sys
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from launchers.batch_systems import registry
from launchers.entry_points import EntryPointError

MODULE = """
from dataclasses import replace
from launchers.batch_systems.slurm import SLURM
MINE = replace(SLURM, label="Mine", scheduler=replace(SLURM.scheduler, name="mine"))
NOTHING = 3
"""


@pytest.fixture(autouse=True)
def _fresh(monkeypatch, tmp_path):
    (tmp_path / "mine_batch.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    registry._others.cache_clear()
    registry._load.cache_clear()
    yield
    registry._others.cache_clear()
    registry._load.cache_clear()
    sys.modules.pop("mine_batch", None)


def installed(folder: Path, entry: str) -> None:
    """Write what an installed distribution leaves."""
    info = folder / "mine-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[{registry.GROUP}]\n{entry}\n")


def test_a_batch_system_of_another_distribution_is_one_of_all(tmp_path):
    installed(tmp_path, "mine = mine_batch:MINE")
    assert registry.names()[-1] == "mine"
    assert registry.find_batch_system("mine").label == "Mine"
    assert registry.all_batch_systems()[-1].label == "Mine"


def test_a_name_that_ships_is_refused_and_stays_what_it_is(tmp_path):
    installed(tmp_path, "slurm = mine_batch:MINE")
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
def test_what_is_wrong_with_one_names_its_distribution(tmp_path, entry, says):
    installed(tmp_path, entry)
    with pytest.raises(EntryPointError, match="of mine") as caught:
        registry.find_batch_system(entry.partition(" ")[0])
    assert says in str(caught.value)


def test_one_that_is_broken_does_not_hide_those_that_ship(tmp_path):
    installed(tmp_path, "mine = no_such_module:MINE")
    assert registry.find_batch_system("slurm").label == "Slurm"
    assert "mine" in registry.names()


def test_one_that_does_not_say_its_distribution_is_refused_as_well():
    with pytest.raises(EntryPointError, match="an unknown distribution"):
        registry._load(EntryPoint("mine", "no_such_module:MINE", registry.GROUP))


def test_a_name_that_nobody_has():
    with pytest.raises(KeyError):
        registry.find_batch_system("nobody")
