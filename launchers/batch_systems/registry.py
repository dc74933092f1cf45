"""The batch systems by their names: the one list that files, options and the service derive theirs from."""

from collections.abc import Mapping

from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.grid_engine import GRID_ENGINE
from launchers.batch_systems.lsf import LSF
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM
from launchers.batch_systems.system import BatchSystem

BATCH_SYSTEMS: Mapping[str, BatchSystem] = {system.name: system for system in (SLURM, PBS, GRID_ENGINE, LSF, FLUX)}
"""Those that ship with autotune."""

EXPERIMENTAL = [system.name for system in BATCH_SYSTEMS.values() if system.experimental]


def names() -> list[str]:
    """Return the names of all batch systems."""
    return list(BATCH_SYSTEMS)


def find_batch_system(name: str) -> BatchSystem:
    """Return the batch system of a name.

    Raises:
        KeyError: there is none.
    """
    return BATCH_SYSTEMS[name]


def all_batch_systems() -> list[BatchSystem]:
    """Return all batch systems."""
    return list(BATCH_SYSTEMS.values())
