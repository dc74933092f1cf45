"""The meters of one run: those that its node has, and that tell something of it."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

from .amd import VISIBLE as AMD_VISIBLE
from .amd import amd_readers
from .cards import CardReader, Cards
from .command import CommandMeter
from .figures import with_sum
from .nvml import LIBRARY, nvidia_readers
from .nvml import VISIBLE as NVIDIA_VISIBLE
from .perf import Perf
from .powercap import SYS, Powercap


class Meter(Protocol):
    """Reads something that a machine counts. Times are seconds of one clock.

    A meter that finds nothing to read raises an OSError when it is made. What it cannot read later it leaves out.
    """

    def begin(self, now_s: float) -> None:
        """Take note of the counters, right before the run."""

    def sample(self, now_s: float) -> None:
        """Look at them during the run."""

    def end(self, now_s: float) -> dict[str, float]:
        """Look at them right after the run; return what they say of it, by the names of `figures.UNITS`."""


class RunMeters:
    """All meters of a run together. One that fails is left out from there on, whatever its driver does."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        sys: str = SYS,
        library: str = LIBRARY,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find the meters of a job: of several nodes only its command, since this one is a part of the whole."""
        self._clock = clock
        environment, self._gpus = spec["environment"], spec["gpus"]
        self._has_command = bool(spec["meter"])
        made: list[Callable[[], Meter]] = []
        if spec["nodes"] == 1:
            made.append(lambda: _of_processors(sys))
            made += [lambda: Cards(card_readers(environment, self._gpus, sys, library))] if self._gpus else []
        if self._has_command:
            made.append(lambda: CommandMeter(spec["meter"], environment))
        self._meters = [meter for make in made if (meter := _make_or_none(make)) is not None]

    def begin(self) -> None:
        """Take note of the counters: the slowest first, which is no part of what the others count."""
        self._meters.reverse()
        self._each(lambda meter: meter.begin(self._clock()))
        self._meters.reverse()

    def sample(self) -> None:
        """Look at them."""
        self._each(lambda meter: meter.sample(self._clock()))

    def end(self) -> dict[str, float]:
        """Return what they say, and the sum of the energies, but where the job's own command is to tell the whole.

        One that tells nothing of this run tells it of others, which would be compared with a sum of other things.
        """
        found: dict[str, float] = {}
        self._each(lambda meter: found.update(meter.end(self._clock())))
        return found if self._has_command else with_sum(found, self._gpus)

    def _each(self, act: Callable[[Meter], None]) -> None:
        for meter in tuple(self._meters):
            try:
                act(meter)
            except Exception:  # noqa: BLE001  whatever it is, the other meters go on
                self._meters.remove(meter)


def _make_or_none(make: Callable[[], Meter]) -> Meter | None:
    try:
        return make()
    except OSError:
        return None


def _of_processors(sys: str) -> Meter:
    """Return what reads RAPL: its counters are the same ones by powercap's files and by perf's events.

    Raises:
        OSError: neither can be read.
    """
    try:
        return Powercap(sys)
    except OSError:
        return Perf(sys)


def card_readers(
    environment: Mapping[str, str], gpus: int, sys: str = SYS, library: str = LIBRARY
) -> Sequence[CardReader]:
    """Return what reads the cards of a job, NVIDIA's or AMD's: Slurm may set the variables of both for any card.

    Raises:
        OSError: no card is known, or which the job sees.
    """
    nvidia, amd = environment.get(NVIDIA_VISIBLE), environment.get(AMD_VISIBLE)
    found: list[Sequence[CardReader]] = []
    if nvidia is not None or amd is None:
        with suppress(OSError):
            found.append(nvidia_readers(nvidia, gpus, library))
    if amd is not None or nvidia is None:
        with suppress(OSError):
            found.append(amd_readers(amd, gpus, sys))
    if len(found) != 1:
        msg = f"the cards of the job are not known: those of {len(found)} vendors could be its own"
        raise OSError(msg)
    return found[0]
