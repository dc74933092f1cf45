"""Software as values: what a study file asks for, and what this machine loaded for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Self

from launchers.mpi import MpiFlavour
from launchers.software.changes import NO_CHANGES, Changes
from launchers.software.containers import Container


class SoftwareError(Exception):
    """Software is not available here; the message says why and what to do."""


@dataclass(frozen=True)
class Software:
    """The sources of the programs of a run; by default, the environment in which the study was started.

    Attributes:
        modules: Modules to load, in order.
        purge: Whether to unload all other modules first.
        spack: Specs of installed Spack packages.
        spack_environment: The name or folder of a Spack environment.
        container: An image that contains the programs.
        runtime: Starts the image; by default the first runtime available.
        programs: Folders that are searched first for programs.
        libraries: Folders that are searched first for libraries.
        variables: Variables to set.
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
    """Software as loaded on this machine.

    Attributes:
        changes: The changes of the environment.
        script: The lines of a job script that make the same changes.
        identity: Identifies the software, by digests.
        container: The image in which the programs run.
        mpi: The MPI start command that comes with it.
        secrets: Variables of its jobs that `changes` and `script` do not contain.
    """

    changes: Changes = NO_CHANGES
    script: tuple[str, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict)
    container: Container | None = None
    mpi: MpiFlavour | None = None
    secrets: Mapping[str, str] = field(default_factory=dict)

    @property
    def variables(self) -> Mapping[str, str]:
        """The variables that starting its container needs."""
        return {} if self.container is None else self.container.runtime.variables()

    def with_mpi(self, mpi: MpiFlavour | None) -> Self:
        """Return this software with the MPI start command that comes with it."""
        return replace(self, mpi=mpi)

    def command(self, argv: tuple[str, ...], folder: Path) -> tuple[str, ...]:
        """Return the command line that runs `argv` in `folder`, inside the image if there is one."""
        return argv if self.container is None else (*self.container.command(folder), *argv)


def flavour_for(software: LoadedSoftware | None, own: MpiFlavour, *, on_site: bool = False) -> MpiFlavour:
    """Return the flavour that starts a job's ranks: the one that comes with its software, or else the launcher's `own`.

    On the nodes of a site it is found by its name, as the job script loads it. If the batch system itself starts ranks
    there, it does so for every software.
    """
    brought = software.mpi if software is not None else None
    if brought is None or (on_site and (own.kind.allocation_variable or brought.kind.allocation_variable)):
        return own
    return replace(brought, path=PurePath(brought.path).name) if on_site else brought
