"""Cards: which trial has which accelerator, so that no two trials ever share one.

As with cores, a pool hands them out within a study, and a lock file a card does between studies of one user.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.core_pool import CorePool
from autotune.execution.user_folder import user_folder
from autotune.lockfile import LockFile
from autotune.machines.cards import find_cards
from launchers import Resources
from launchers.card import Card

# Where no tool lists the cards, all that a program finds count as one: trials that need any run one at a time.
_WHATEVER_IS_THERE = Card("")


class CardPool:
    """The cards of this machine that no trial of a study uses at the moment; those of other studies are theirs.

    The first trial that needs a card makes the pool find and claim all that are free then.
    """

    def __init__(
        self, work: str = "", find: Callable[[], Sequence[Card]] = find_cards, folder: Path | None = None
    ) -> None:
        """Claim cards for some `work`, by lock files in `folder`."""
        self._work = work
        self._find = find
        self._folder = folder
        self._locks: list[LockFile] | None = None
        self._free: list[Card] = []
        self._size = 0

    def take(self, count: int) -> tuple[Card, ...] | None:
        """Return so many cards for a trial, or all there are if it wants more; None: not now.

        Raises:
            BusyError: other studies have all of them.
            CannotRunHereError: they cannot be locked.
        """
        if self._locks is None:
            self._claim()
        count = min(count, self._size)
        if count > len(self._free):
            return None
        taken, self._free = self._free[:count], self._free[count:]
        return tuple(taken)

    def give_back(self, cards: Sequence[Card]) -> None:
        """Return a trial's cards to the pool."""
        self._free += cards

    def close(self) -> None:
        """Give the cards up."""
        for lock in self._locks or ():
            lock.close()
        self._locks = None

    def _claim(self) -> None:
        locks: dict[Card, LockFile] = {}
        others = []
        for card in tuple(self._find()) or (_WHATEVER_IS_THERE,):
            path = (self._folder or user_folder()) / f"card-{card.name or 'any'}.lock"
            try:
                lock = LockFile.open(path)
            except OSError as error:
                for locked in locks.values():
                    locked.close()
                msg = f"cannot lock a GPU by {path}: {error.strerror}"
                raise CannotRunHereError(msg) from error
            if lock.lock():
                lock.sign(self._work)
                locks[card] = lock
            else:
                others.append(str(lock.holder() or "another process"))
                lock.close()
        if not locks:
            msg = (
                f"the GPUs of this machine are in use by {', '.join(dict.fromkeys(others))}; wait for it, or give each "
                "study its own with CUDA_VISIBLE_DEVICES (ROCR_VISIBLE_DEVICES)"
            )
            raise BusyError(msg)
        self._locks, self._free, self._size = [*locks.values()], [*locks], len(locks)


class MachinePool:
    """The cores and the cards of this machine that no trial of a study uses at the moment."""

    def __init__(self, cores: CorePool, cards: CardPool) -> None:
        """Hand out both."""
        self._cores = cores
        self._cards = cards

    def take(self, wanted: Resources) -> Resources | None:
        """Return the resources with cores and cards of their own, the cores near the cards; None: not now.

        Raises:
            BusyError: other studies have all cards.
        """
        cards = self._cards.take(wanted.gpus) if wanted.gpus else ()
        if cards is None:
            return None
        taken = self._cores.take(wanted, {cpu for card in cards for cpu in card.cpus})
        if taken is None:
            self._cards.give_back(cards)
            return None
        return replace(taken, cards=cards)

    def give_back(self, taken: Resources) -> None:
        """Return what a job had."""
        self._cores.give_back(taken)
        self._cards.give_back(taken.cards)
