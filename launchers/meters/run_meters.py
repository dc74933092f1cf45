"""The meters of one run: those that its node has and that can measure the run."""

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
    """Reads something that a machine counts. Times are in seconds of one clock.

    Its constructor raises an OSError if there is nothing to read. Values that cannot be read later are left out.
    """

    def begin(self, now_s: float) -> None:
        """Read the counters right before the run."""

    def sample(self, now_s: float) -> None:
        """Read them during the run."""

    def end(self, now_s: float) -> dict[str, float]:
        """Read them right after the run; return the figures of the run, by the names of `figures.UNITS`."""


class RunMeters:
    """All meters of a run. A meter that fails, whatever its driver does, is left out from then on."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        sys: str = SYS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Find the meters of a job.

        A job of several nodes has only its command, since the meters of this node measure only a part of it.
        """
        self._clock = clock
        environment, self._gpus = spec["environment"], spec["gpus"]
        self._has_command = bool(spec["meter"])
        made: list[Callable[[], Meter]] = []
        if spec["nodes"] == 1:
            made.append(lambda: _of_processors(sys))
            made += [lambda: Cards(card_readers(environment, self._gpus, sys))] if self._gpus else []
        if self._has_command:
            made.append(lambda: CommandMeter(spec["meter"], environment))
        self._meters = [meter for make in made if (meter := _make_or_none(make)) is not None]

    def begin(self) -> None:
        """Read the counters, the slowest first, so that its own energy is not counted by the others."""
        self._meters.reverse()
        self._each(lambda meter: meter.begin(self._clock()))
        self._meters.reverse()

    def sample(self) -> None:
        """Read the counters."""
        self._each(lambda meter: meter.sample(self._clock()))

    def end(self) -> dict[str, float]:
        """Return the figures, with the sum of the energies unless the job's own command measures the whole.

        If that command fails in this run, a sum of other meters would be compared with its figures of other runs.
        """
        found: dict[str, float] = {}
        self._each(lambda meter: found.update(meter.end(self._clock())))
        return found if self._has_command else with_sum(found, self._gpus)

    def _each(self, act: Callable[[Meter], None]) -> None:
        for meter in tuple(self._meters):
            try:
                act(meter)
            except Exception:  # noqa: BLE001  whatever it is, keep the other meters
                self._meters.remove(meter)


def _make_or_none(make: Callable[[], Meter]) -> Meter | None:
    try:
        return make()
    except OSError:
        return None


def _of_processors(sys: str) -> Meter:
    """Return a meter of RAPL: powercap's files and perf's events show the same counters.

    Raises:
        OSError: Neither can be read.
    """
    try:
        return Powercap(sys)
    except OSError:
        return Perf(sys)


def card_readers(
    environment: Mapping[str, str], gpus: int, sys: str = SYS, library: str = LIBRARY
) -> Sequence[CardReader]:
    """Return the readers of a job's cards, NVIDIA's or AMD's; Slurm may set the variables of both for any card.

    Raises:
        OSError: There are no cards, or it is not known which the job sees.
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
        msg = f"the cards of the job are not known: cards of {len(found)} vendors could belong to it"
        raise OSError(msg)
    return found[0]
