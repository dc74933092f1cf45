"""The batch systems by name: the one list from which files, options and the service take theirs.

Another distribution adds a batch system by an entry point of the group `autotune.batch_systems`, with the name of the
batch system and a `BatchSystem` as value. Finding entry points takes time, so it is done only for a name that does not
ship with autotune, or when all are wanted.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.grid_engine import GRID_ENGINE
from launchers.batch_systems.lsf import LSF
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM
from launchers.batch_systems.system import BatchSystem
from launchers.extensions.entry_points import EntryPointError, describe, find_entry_points, load_entry_point

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "autotune.batch_systems"

BATCH_SYSTEMS: Mapping[str, BatchSystem] = {system.name: system for system in (SLURM, PBS, GRID_ENGINE, LSF, FLUX)}
"""The batch systems that ship with autotune."""

EXPERIMENTAL = [system.name for system in BATCH_SYSTEMS.values() if system.experimental]


def names() -> list[str]:
    """Return the names of all batch systems."""
    return [*BATCH_SYSTEMS, *_others()]


def find_batch_system(name: str) -> BatchSystem:
    """Return the batch system called `name`.

    Raises:
        KeyError: No batch system has this name.
        EntryPointError: It comes from another distribution and cannot be loaded.
    """
    return BATCH_SYSTEMS[name] if name in BATCH_SYSTEMS else _load(_others()[name])


def all_batch_systems() -> list[BatchSystem]:
    """Return all batch systems.

    Raises:
        EntryPointError: One from another distribution cannot be loaded, or has the name of one that ships.
    """
    return [*BATCH_SYSTEMS.values(), *map(_load, _others().values())]


@cache
def _others() -> Mapping[str, "EntryPoint"]:
    """Return the entry points of other distributions, without importing them."""
    return find_entry_points(GROUP, taken=BATCH_SYSTEMS)


@cache
def _load(point: "EntryPoint") -> BatchSystem:
    system = load_entry_point(point)
    if not isinstance(system, BatchSystem):
        msg = f"{describe(point)} must be a launchers.batch_systems.system.BatchSystem, got {type(system).__name__}"
        raise EntryPointError(msg)
    if system.name != point.name:
        msg = f"{describe(point)}: its value is called {system.name!r}; the entry point must have the same name"
        raise EntryPointError(msg)
    return system
