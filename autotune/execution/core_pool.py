"""Cores: who may use which, so that no two trials ever share one. `node_pool` has those of several hosts.

Within a study a pool hands them out; between studies of one user on one machine a lock file a core does.
"""

import getpass
import os
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Protocol, Self

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.user_folder import user_folder
from autotune.locks import HeldError, LockFile, WaitBy, claim_when_free
from launchers import Resources
from launchers.cpus import threads_of


def claim_purpose(study: str) -> str:
    """Return what cores are claimed for, for others who wait for them: the study, the folder and the user."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError):  # a container may have no name for this user
        user = str(os.getuid())
    return f"study {study!r} of {user} in {Path.cwd()}"


class Pool(Protocol):
    """What no trial uses at the moment."""

    def take(self, wanted: Resources) -> Resources | None:
        """Return where a job that wants so much runs, which is then its own; None: not now.

        Raises:
            CannotRunHereError: never, for there is not that much any more.
        """

    def give_back(self, taken: Resources) -> None:
        """Return what a job had."""


class CorePool:
    """The cores of this machine that no trial of a study uses at the moment."""

    def __init__(self, cpus: Iterable[int]) -> None:
        """Start with all of `cpus` free."""
        self._free = sorted(cpus)
        self._size = len(self._free)

    def take(self, wanted: Resources, near: Collection[int] = ()) -> Resources | None:
        """Return the resources with cores of their own, or all there are for a job that wants more; None: not now.

        A job that names its cores gets these. Cores that are `near` what the job uses beside them go first.
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
    """Exclusive use of cores against other studies of this user; ends with the process, however it ends."""

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
        """Lock all of `cpus` for some `work`; with `wait_by`, wait until they are free, and tell it for whom.

        Raises:
            BusyError: another study uses one of them.
            CannotRunHereError: the lock files cannot be used.
        """
        wanted = tuple(cpus)
        return claim_when_free(lambda: cls._claim_now(wanted, folder or user_folder(), work), wait_by)

    @classmethod
    def _claim_now(cls, cpus: Iterable[int], folder: Path, work: str) -> Self:
        files: list[LockFile] = []
        # By the first hardware thread of each core: another study may be allowed the others.
        for cpu in dict.fromkeys(min(threads_of(cpu)) for cpu in cpus):
            path = folder / f"cpu{cpu}.lock"
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
        """Give the cores up."""
        for file in self._files:
            file.close()
        self._files.clear()
