"""Software as a value: what a study file asks for, and what was made of it on this machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Self

from launchers.mpi import MpiFlavour
from launchers.software.changes import NO_CHANGES, Changes
from launchers.software.containers import Container


class SoftwareError(Exception):
    """Software cannot be had here; the message says why and what to do."""


@dataclass(frozen=True)
class Software:
    """Where the programs of a run come from; without anything, from where the study was started.

    `modules` are loaded in their order, after all others were unloaded with `purge`. `spack` are specs of installed
    packages, `spack_environment` is a name or a folder. `container` is an image in which the programs are, started by
    `runtime`, by default the first that is here. `programs` and `libraries` are folders that are searched before all
    others, `variables` are set.
    """

    modules: tuple[str, ...] = ()
    purge: bool = False
    spack: tuple[str, ...] = ()
    spack_environment: str = ""
    container: str = ""
    runtime: str = ""
    programs: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LoadedSoftware:
    """Software made ready on this machine.

    `changes` are those of the environment, and `script` the lines of a job script that do the same; `identity` tells
    which software it is, by digest; `mpi` is the MPI start command that comes with it, if one does. `secrets` are
    variables that its jobs have, and that neither changes nor script tell.
    """

    changes: Changes = NO_CHANGES
    script: tuple[str, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    mpi: MpiFlavour | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, str]:
        """What the start of its container needs in the environment."""
        return {} if self.container is None else self.container.runtime.variables()

    def with_mpi(self, mpi: MpiFlavour | None) -> Self:
        """Return this software with the MPI start command that comes with it."""
        return replace(self, mpi=mpi)

    def command(self, argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
        """Return the command line that runs `argv` in `folder`, inside the image if there is one."""
        return argv if self.container is None else (*self.container.command(folder), *argv)


def flavour_for(software: LoadedSoftware | None, own: MpiFlavour, *, on_site: bool = False) -> MpiFlavour:
    """Return what starts the ranks of a job: what comes with its software, or else the launcher's own.

    On the nodes of a site it is found by its name, as the job script loads it; where the batch system itself starts
    ranks there, it does for every software.
    """
    brought = software.mpi if software is not None else None
    if brought is None or (on_site and (own.kind.allocation_variable or brought.kind.allocation_variable)):
        return own
    return replace(brought, path=PurePath(brought.path).name) if on_site else brought
