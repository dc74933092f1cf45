"""Cards: which trial has which accelerator, so that no two trials ever share one.

As with cores, a pool hands them out within a study, and a lock file a card does between studies of one user.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

from autotune.errors import BusyError, CannotRunHereError
from autotune.execution.core_pool import CorePool
from autotune.execution.user_folder import user_folder
from autotune.locks import HeldError, LockFile, WaitBy, claim_when_free
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
        self,
        work: str = "",
        find: Callable[[], Sequence[Card]] = find_cards,
        folder: Path | None = None,
        wait_by: WaitBy | None = None,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Claim cards for some `work`, by lock files in `folder`.

        With `wait_by`, wait for cards that other studies have, and tell it for whom; `waiting` is the context of that.
        """
        self._work = work
        self._find = find
        self._folder = folder
        self._wait_by = wait_by
        self._waiting = waiting
        self._locks: dict[Card, LockFile] = {}
        self._free: list[Card] = []
        # Of a machine with fewer cards than a trial wants it has all.
        self._most: int | None = None

    def take(self, count: int) -> tuple[Card, ...] | None:
        """Return so many cards for a trial, or all that the machine has if it wants more; None: not now.

        Raises:
            BusyError: other studies have them.
            CannotRunHereError: they cannot be locked.
        """
        if self._most is None or min(count, self._most) > len(self._locks):
            if len(self._free) < len(self._locks):
                return None
            # Once: the vendor's tool wakes the driver, beside the runs that are waited for.
            cards = tuple(self._find()) or (_WHATEVER_IS_THERE,)
            with self._waiting():
                claim_when_free(lambda: self._claim(cards, count), self._wait_by)
        count = min(count, len(self._locks))
        if count > len(self._free):
            return None
        taken, self._free = self._free[:count], self._free[count:]
        return tuple(taken)

    def give_back(self, cards: Sequence[Card]) -> None:
        """Return a trial's cards to the pool."""
        self._free += cards

    def close(self) -> None:
        """Give the cards up."""
        for lock in self._locks.values():
            lock.close()
        self._locks, self._free, self._most = {}, [], None

    def _claim(self, cards: Sequence[Card], count: int) -> None:
        # Those that are here already, too: two studies that wait for each other's would wait for ever.
        self.close()
        others = []
        for card in cards:
            try:
                self._locks[card] = self._lock_card(card)
            except HeldError as held:
                others.append(str(held))
        if len(self._locks) < min(count, len(cards)):
            free = len(self._locks)
            self.close()
            some = "the GPUs of this machine" if not free else f"a run needs {count} GPUs, {free} are free; others"
            msg = (
                f"{some} are in use by {', '.join(dict.fromkeys(others))}; wait for it (--wait does), or give each "
                "study its own with CUDA_VISIBLE_DEVICES (ROCR_VISIBLE_DEVICES, ZE_AFFINITY_MASK)"
            )
            raise BusyError(msg)
        self._free, self._most = [*self._locks], len(cards)

    def _lock_card(self, card: Card) -> LockFile:
        path = (self._folder or user_folder()) / f"card-{card.vendor}-{card.name or 'any'}.lock"
        try:
            return LockFile.hold(path, self._work)
        except OSError as error:
            self.close()
            msg = f"cannot lock a GPU by {path}: {error.strerror}"
            raise CannotRunHereError(msg) from error


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
