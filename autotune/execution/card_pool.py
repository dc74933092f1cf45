"""Cards: give each trial its own accelerators.

As for cores, a pool assigns them within a study, and a lock file for each card separates studies of one user.
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

# If no tool lists the cards, they count as a single card, so that only one trial uses them at a time.
_WHATEVER_IS_THERE = Card("")


class CardPool:
    """The free cards of this machine that a study has claimed.

    The first trial that needs a card makes the pool claim all cards that no other study has.
    """

    def __init__(
        self,
        work: str = "",
        find: Callable[[], Sequence[Card]] = find_cards,
        folder: Path | None = None,
        wait_by: WaitBy | None = None,
        waiting: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Claim no card yet.

        Args:
            work: The purpose of the claim, for others who wait.
            find: Lists the machine's cards.
            folder: The folder of the lock files; the user's folder if None.
            wait_by: Gets the message about waiting for another study; without it, the pool does not wait.
            waiting: The context for waiting.
        """
        self._work = work
        self._find = find
        self._folder = folder
        self._wait_by = wait_by
        self._waiting = waiting
        self._locks: dict[Card, LockFile] = {}
        self._free: list[Card] = []
        # The number of cards of the machine. A trial that wants more gets all of them.
        self._most: int | None = None

    def take(self, count: int) -> tuple[Card, ...] | None:
        """Return `count` cards for a trial, or all if the machine has fewer; None if they are not free now.

        Raises:
            BusyError: Other studies use the cards.
            CannotRunHereError: The cards cannot be locked.
        """
        if self._most is None or min(count, self._most) > len(self._locks):
            if len(self._free) < len(self._locks):
                return None
            # Listed once, before waiting: the vendor's tool wakes the driver, which would disturb the others' runs.
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
        """Release all cards."""
        for lock in self._locks.values():
            lock.close()
        self._locks, self._free, self._most = {}, [], None

    def _claim(self, cards: Sequence[Card], count: int) -> None:
        # Release the cards that this study has, or two studies could wait for each other for ever.
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
    """The free cores and cards of this machine."""

    def __init__(self, cores: CorePool, cards: CardPool) -> None:
        """Assign cores and cards from two pools."""
        self._cores = cores
        self._cards = cards

    def take(self, wanted: Resources) -> Resources | None:
        """Return the resources with their own cards and cores near them; None if they are not free now.

        Raises:
            BusyError: Other studies use all cards.
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
        """Return a job's cores and cards to the pools."""
        self._cores.give_back(taken)
        self._cards.give_back(taken.cards)
