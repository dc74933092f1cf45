"""The mirror study: a study in memory in which an Optuna sampler sees the trials of the real one in its own terms.

It can be rebuilt at any time by replaying the real trials in their order. Most samplers need only the trials. Some
store notes on their own proposals in the study (CMA-ES: the generation of a trial); these are asked again for each
trial in turn, before they learn which configuration was tried instead. If only the newest trial has ended since the
last proposal, nothing is replayed.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import optuna
from numpy.typing import NDArray
from optuna.samplers import BaseSampler
from optuna.storages import InMemoryStorage
from optuna.study import StudyDirection
from optuna.trial import TrialState, create_trial

from autotune.search.base import Rows
from autotune.search.codec import Codec

_NAME = "mirror"


class _Study(optuna.Study):
    """A study that its sampler cannot end.

    BruteForceSampler ends a study once it has tried everything, but here the valid set decides that.
    """

    def stop(self) -> None:
        """Do nothing, so that the study continues."""


@dataclass(frozen=True)
class InnerSampler:
    """An Optuna sampler and its properties.

    Attributes:
        build: Makes the sampler from a seed.
        remembers: Whether it stores notes on its own proposals in the study.
        numeric: Whether it cannot handle categorical distributions.
        steady: Whether it needs the same seed every time.
    """

    build: Callable[[int], BaseSampler]
    remembers: bool = True
    numeric: bool = False
    steady: bool = False


@dataclass(frozen=True)
class _Entry:
    row: bytes
    value: float | None

    @property
    def ended(self) -> bool:
        return self.value is not None


def new_storage(name: str) -> InMemoryStorage:
    """Return a storage in memory with one study, without Optuna's message, since users do not know about this study."""
    storage = InMemoryStorage()
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        storage.create_new_study([StudyDirection.MINIMIZE], name)
    finally:
        optuna.logging.set_verbosity(verbosity)
    return storage


class MirrorStudy:
    """Asks an inner sampler; its n-th proposal depends on the seed and the values of n trials alone."""

    def __init__(self, codec: Codec, inner: InnerSampler, seed: int) -> None:
        self._codec = codec
        self._inner = inner
        self._seed = seed
        self._entries: list[_Entry] = []
        self._open: optuna.Trial | None = None
        self._start()

    def ask(self, rows: Rows, values: NDArray[np.float64]) -> Rows:
        """Return what the sampler proposes, (p,), a row of value indexes that need not be valid.

        Args:
            rows: the trials so far, (n, p), the default configuration first.
            values: what to minimise, (n,); NaN for those that are running.
        """
        entries = [
            _Entry(row.tobytes(), None if np.isnan(value) else value)
            for row, value in zip(np.ascontiguousarray(rows), values.tolist(), strict=True)
        ]
        if not self._continues(entries):
            self._start()
        for number, entry in enumerate(entries):
            if number == len(self._entries):
                self._add(number, rows[number], entry)
            elif entry != self._entries[number]:
                self._tell(number, entry)
        self._entries = entries
        return self._codec.decode(self._propose(len(entries)).params)

    def _start(self) -> None:
        self._storage = new_storage(_NAME)
        self._study = _Study(_NAME, self._storage)
        self._entries = []
        self._open = None

    def _continues(self, entries: list[_Entry]) -> bool:
        """Return whether the study can be brought up to `entries` without a replay."""
        known = self._entries
        if len(entries) < len(known) or (self._open is not None and len(entries) == len(known)):
            return False
        pairs = zip(known, entries, strict=False)
        changed = [number for number, (before, now) in enumerate(pairs) if before != now]
        if any(known[number].ended or known[number].row != entries[number].row for number in changed):
            return False
        return not changed or not self._inner.remembers

    def _add(self, number: int, row: Rows, entry: _Entry) -> None:
        values = self._codec.encode(row)
        if number and self._open is None and self._inner.remembers:
            self._propose(number)
        if self._open is None:
            state = TrialState.COMPLETE if entry.ended else TrialState.RUNNING
            self._study.add_trial(
                create_trial(state=state, value=entry.value, params=values, distributions=self._codec.distributions)
            )
        else:
            self._correct(number, values)
            self._open = None
            if entry.ended:
                self._tell(number, entry)
        self._entries.append(entry)

    def _propose(self, number: int) -> optuna.Trial:
        # Use a new sampler for each proposal, since state carried between proposals could not be restored.
        sequence = np.random.SeedSequence([self._seed, 0 if self._inner.steady else number])
        self._study.sampler = self._inner.build(int(sequence.generate_state(1)[0]) >> 1)
        self._open = self._study.ask(fixed_distributions=dict(self._codec.distributions))
        return self._open

    def _correct(self, number: int, values: dict[str, float]) -> None:
        """Replace the proposed values by the tried ones."""
        study = self._storage.get_study_id_from_name(_NAME)
        trial = self._storage.get_trial_id_from_study_id_trial_number(study, number)
        for name, distribution in self._codec.distributions.items():
            self._storage.set_trial_param(trial, name, distribution.to_internal_repr(values[name]), distribution)

    def _tell(self, number: int, entry: _Entry) -> None:
        self._study.tell(number, entry.value)
