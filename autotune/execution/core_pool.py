"""Cores: give each trial its own cores of this machine. `node_pool` does so for several hosts.

A pool assigns them within a study, and a lock file for each core separates studies of one user on one machine.
"""

import getpass
import os
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.user_folder import user_folder
from autotune.locks import HeldError, LockFile, WaitBy, claim_when_free, find_local_holder
from autotune.user_paths import find_user_folder
from launchers import Resources
from launchers.cpus import threads_of


def claim_purpose(study: str) -> str:
    """Return the purpose of a claim for others who wait: the study, its user and the folder."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for this user
        user = str(os.getuid())
    return f"study {study!r} of {user} in {Path.cwd()}"


class Pool(Protocol):
    """The resources that no trial uses at the moment."""

    def take(self, wanted: Resources) -> Resources | None:
        """Return the resources of a job with their place, reserved for it; None if they are not free now.

        Raises:
            CannotRunHereError: The resources will never be free, because too few are left.
        """

    def give_back(self, taken: Resources) -> None:
        """Return a job's resources to the pool."""


def find_core_user() -> str | None:
    """Return which core that this process may use is claimed, and by which other process; None if none is."""
    with suppress(OSError):  # the list of hardware threads cannot be read
        for cpu in sorted(os.sched_getaffinity(0)):
            if (holder := find_local_holder(_lock_path(find_user_folder(), cpu))) is not None:
                return f"core {cpu} is in use by {holder}"
    return None


def _lock_path(folder: Path, cpu: int) -> Path:
    # Locks are named for the first hardware thread of a core, since studies may be allowed different threads of it.
    return folder / f"cpu{min(threads_of(cpu))}.lock"


class CorePool:
    """The cores of this machine that no trial of the study uses at the moment."""

    def __init__(self, cpus: Iterable[int]) -> None:
        """Start with all of `cpus` free."""
        self._free = sorted(cpus)
        self._size = len(self._free)

    def take(self, wanted: Resources, near: Collection[int] = ()) -> Resources | None:
        """Return the resources with their own cores; None if they are not free now.

        A job that wants more cores than the pool has gets all. A job that names its cores gets these. Cores in `near`
        are assigned first.
        """
        if wanted.cpus:
            if not set(wanted.cpus) <= set(self._free):
                return None
            self._free = sorted(set(self._free) - set(wanted.cpus))
            return wanted
        count = min(wanted.cores, self._size)
        if count > len(self._free):
            return None
        ordered = sorted(self._free, key=lambda cpu: (cpu not in near, cpu))
        taken, self._free = ordered[:count], sorted(ordered[count:])
        return replace(wanted, cpus=tuple(sorted(taken)))

    def give_back(self, taken: Resources) -> None:
        """Return a job's cores to the pool."""
        self._free = sorted({*self._free, *taken.cpus})


class CoreClaim:
    """Exclusive use of cores among the studies of this user; the system ends it with the process."""

    def __init__(self, files: Sequence[LockFile]) -> None:
        """Hold locked files; use `claim`."""
        self._files = list(files)

    @classmethod
    def claim(
        cls,
        cpus: Iterable[int],
        folder: Path | None = None,
        wait_by: WaitBy | None = None,
        work: str = "",
    ) -> Self:
        """Lock all of `cpus`.

        Args:
            cpus: Hardware threads, one for each core.
            folder: The folder of the lock files; the user's folder if None.
            wait_by: Gets the message about waiting for another study; without it, this does not wait.
            work: The purpose of the claim, for others who wait.

        Raises:
            BusyError: Another study uses one of the cores.
            CannotRunHereError: The lock files cannot be used.
        """
        wanted = tuple(cpus)
        return claim_when_free(lambda: cls._claim_now(wanted, folder or user_folder(), work), wait_by)

    @classmethod
    def _claim_now(cls, cpus: Iterable[int], folder: Path, work: str) -> Self:
        files: list[LockFile] = []
        for path, cpu in {_lock_path(folder, cpu): min(threads_of(cpu)) for cpu in cpus}.items():
            try:
                files.append(LockFile.hold(path, work))
            except HeldError as held:
                cls(files).release()
                msg = (
                    f"core {cpu} is in use by {held}: two studies on the same cores would spoil each other's "
                    "measurements; wait for it (--wait does), or give each its own cores with --cores"
                )
                raise BusyError(msg) from None
            except OSError as error:
                cls(files).release()
                msg = f"cannot lock core {cpu} by {path}: {error.strerror}"
                raise CannotRunHereError(msg) from error
        return cls(files)

    def release(self) -> None:
        """Release the cores."""
        for file in self._files:
            file.close()
        self._files.clear()
