"""Use of a run's cards: periodic readings of each card, summed over the run."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from .figures import GPU_BUSY, GPU_ENERGY, GPU_PEAK_MEMORY, GPU_PEAK_POWER, GPU_POWER


class Reading(NamedTuple):
    """The reading of a card at one time; None for what the card does not report.

    Attributes:
        busy_share: The share of a short time before the reading in which the card computed.
        memory_bytes: The memory in use.
        power_w: The power at the time.
        energy_j: A counter that only grows.
    """

    busy_share: float | None = None
    memory_bytes: int | None = None
    power_w: float | None = None
    energy_j: float | None = None


CardReader = Callable[[], Reading]


class Cards:
    """Reads the cards of a run, each with its own reader."""

    def __init__(self, readers: Sequence[CardReader]) -> None:
        """Use `readers`, at least one."""
        self._readers = readers
        self._first: list[Reading] = []
        self._last: list[Reading] = []
        self._last_s = 0.0
        # Integrals of shares and of watts over seconds; None once a card did not report the value.
        self._busy_s: list[float | None] = [0.0] * len(readers)
        self._sampled_j: list[float | None] = [0.0] * len(readers)
        self._seen_s = 0.0
        self._peak_bytes: float | None = 0.0
        self._peak_w: float | None = 0.0

    def begin(self, now_s: float) -> None:
        """Read the counters."""
        self._first = self._last = [reader() for reader in self._readers]
        self._last_s = now_s

    def sample(self, now_s: float) -> None:
        """Read each card; the values stand for the time since the last reading."""
        self._last = [reader() for reader in self._readers]
        self._add(self._last, now_s)

    def _add(self, rates: Sequence[Reading], now_s: float) -> None:
        """Add the shares and watts of `rates` since the last reading; update the maxima from the last reading."""
        passed_s, self._last_s = now_s - self._last_s, now_s
        self._seen_s += passed_s
        self._busy_s = [
            _plus(so_far, one.busy_share, passed_s) for so_far, one in zip(self._busy_s, rates, strict=True)
        ]
        self._sampled_j = [
            _plus(so_far, one.power_w, passed_s) for so_far, one in zip(self._sampled_j, rates, strict=True)
        ]
        powers = [one.power_w for one in self._last]
        self._peak_w = _most(self._peak_w, None if None in powers else sum(filter(None, powers)))
        for one in self._last:
            self._peak_bytes = _most(self._peak_bytes, one.memory_bytes)

    def end(self, now_s: float) -> dict[str, float]:
        """Return the figures of all cards; the energy of cards without a counter is their integrated power.

        A card that is read after the program has ended may report that it is idle. If it was read before, its earlier
        rates also stand for the time since then.
        """
        rates = self._last if self._seen_s else None
        self._last = [reader() for reader in self._readers]
        self._add(self._last if rates is None else rates, now_s)
        energies = [self._energy_j(number) for number in range(len(self._readers))]
        # If two dies share a module, one reports the power of both and the other 0. A running card never draws nothing.
        energy_j = None if None in energies else sum(filter(None, energies)) or None
        busy = [None if busy_s is None or not self._seen_s else busy_s / self._seen_s for busy_s in self._busy_s]
        found = {
            GPU_BUSY: None if None in busy else sum(filter(None, busy)) / len(busy),
            GPU_PEAK_MEMORY: self._peak_bytes,
            GPU_PEAK_POWER: self._peak_w or None,
            GPU_ENERGY: energy_j,
            GPU_POWER: None if energy_j is None or not self._seen_s else energy_j / self._seen_s,
        }
        return {name: value for name, value in found.items() if value is not None}

    def _energy_j(self, number: int) -> float | None:
        before, after = self._first[number].energy_j, self._last[number].energy_j
        if before is not None and after is not None:
            # A reloaded driver counts from 0 again; a counter that has not changed is too coarse for so short a run.
            return after - before if after > before else None
        return self._sampled_j[number]


def _plus(so_far: float | None, rate: float | None, passed_s: float) -> float | None:
    return None if so_far is None or rate is None else so_far + rate * passed_s


def _most(so_far: float | None, now: float | None) -> float | None:
    return None if so_far is None or now is None else max(so_far, now)
