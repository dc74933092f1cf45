"""The batch systems by their names: the one list that files, options and the service derive theirs from.

Another distribution adds one by an entry point of the group `autotune.batch_systems`: its name is that of the batch
system, its value a `BatchSystem`. Looking for entry points takes time, so that it is done only where a name is none of
those that ship, or where all are wanted.
"""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from launchers.base import LaunchError
from launchers.batch_systems.flux import FLUX
from launchers.batch_systems.grid_engine import GRID_ENGINE
from launchers.batch_systems.lsf import LSF
from launchers.batch_systems.pbs import PBS
from launchers.batch_systems.slurm import SLURM
from launchers.batch_systems.system import BatchSystem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "autotune.batch_systems"

BATCH_SYSTEMS: Mapping[str, BatchSystem] = {system.name: system for system in (SLURM, PBS, GRID_ENGINE, LSF, FLUX)}
"""Those that ship with autotune."""

EXPERIMENTAL = [system.name for system in BATCH_SYSTEMS.values() if system.experimental]


def names() -> list[str]:
    """Return the names of all batch systems."""
    return [*BATCH_SYSTEMS, *_others()]


def find_batch_system(name: str) -> BatchSystem:
    """Return the batch system of a name.

    Raises:
        KeyError: there is none.
        LaunchError: it comes from another distribution, and cannot be loaded.
    """
    return BATCH_SYSTEMS[name] if name in BATCH_SYSTEMS else _loaded(_others()[name])


def all_batch_systems() -> list[BatchSystem]:
    """Return all batch systems.

    Raises:
        LaunchError: one from another distribution cannot be loaded.
    """
    return [*BATCH_SYSTEMS.values(), *map(_loaded, _others().values())]


@cache
def _others() -> Mapping[str, "EntryPoint"]:
    """Return the entry points of other distributions; a name that ships stays what it is."""
    from importlib.metadata import entry_points  # noqa: PLC0415  as long as all of the batch systems together

    return {point.name: point for point in entry_points(group=GROUP) if point.name not in BATCH_SYSTEMS}


@cache
def _loaded(point: "EntryPoint") -> BatchSystem:
    whose = f"batch system {point.name!r} of {point.dist.name if point.dist else 'an unknown distribution'}"
    try:
        found = point.load()
    except Exception as error:  # whatever another distribution does
        msg = f"{whose} cannot be loaded from {point.value}: {error!r}; mend or uninstall it"
        raise LaunchError(msg) from error
    if not isinstance(found, BatchSystem):
        msg = f"{whose}: {point.value} is a {type(found).__name__}; it must be a BatchSystem"
        raise LaunchError(msg)
    if found.name != point.name:
        msg = f"{whose}: {point.value} is called {found.name!r}; the entry point must have the same name"
        raise LaunchError(msg)
    return found
