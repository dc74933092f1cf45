"""The meters of one run: those that its node has, and that tell something of it."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .amd import VISIBLE as AMD_VISIBLE
from .amd import amd_looks
from .cards import Cards, Look
from .command import Command
from .meter import Meter
from .metered import with_sum
from .nvml import LIBRARY, nvidia_looks
from .nvml import VISIBLE as NVIDIA_VISIBLE
from .perf import Perf
from .powercap import SYS, Powercap


class MetersOfRun:
    """All meters of a run together. One that fails is left out from there on, whatever its driver does."""

    def __init__(self, spec: Mapping[str, Any], sys: str = SYS, library: str = LIBRARY) -> None:
        """Find the meters of a job: of several nodes only its command, since this one is a part of the whole."""
        environment, self._gpus = spec["environment"], spec["gpus"]
        made: list[Callable[[], Meter]] = []
        if spec["nodes"] == 1:
            made.append(lambda: _of_processors(sys))
            made += [lambda: Cards(looks(environment, self._gpus, sys, library))] if self._gpus else []
        if spec["meter"]:
            made.append(lambda: Command(spec["meter"], environment))
        self._meters = [meter for make in made if (meter := _made(make)) is not None]

    def begin(self, now_s: float) -> None:
        """Take note of the counters."""
        self._each(lambda meter: meter.begin(now_s))

    def sample(self, now_s: float) -> None:
        """Look at them."""
        self._each(lambda meter: meter.sample(now_s))

    def end(self, now_s: float) -> dict[str, float]:
        """Return what they say, and the sum of the energies; the job's own command knows the whole better."""
        found: dict[str, float] = {}
        self._each(lambda meter: found.update(meter.end(now_s)))
        return {**with_sum(found, self._gpus), **found}

    def _each(self, act: Callable[[Meter], None]) -> None:
        for meter in tuple(self._meters):
            try:
                act(meter)
            except Exception:  # noqa: BLE001  whatever it is, the other meters go on
                self._meters.remove(meter)


def _made(make: Callable[[], Meter]) -> Meter | None:
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


def looks(environment: Mapping[str, str], gpus: int, sys: str = SYS, library: str = LIBRARY) -> Sequence[Look]:
    """Return what reads the cards of a job, NVIDIA's or AMD's.

    Raises:
        OSError: no card is known, or which the job sees.
    """
    nvidia, amd = environment.get(NVIDIA_VISIBLE), environment.get(AMD_VISIBLE)
    if amd is None:
        try:
            return nvidia_looks(nvidia, gpus, library)
        except OSError:
            if nvidia is not None:
                raise
    return amd_looks(amd, gpus, sys)
