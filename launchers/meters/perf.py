"""The energy of processors and memory from the kernel's RAPL events, as `perf stat -e power/energy-pkg/` counts it.

Source: perf_event_open(2); Linux, arch/x86/events/rapl.c. A counter begins at 0 when it is opened, has 64 bits, and
counts in steps of `scale` joules; one CPU of each package (`cpumask`) has it. Whole CPUs may be counted by root, by
processes with CAP_PERFMON, and by everyone if `perf_event_paranoid` is 0 or less, even where only root may read
powercap's files.
"""

import ctypes
import os
import re
import struct
from collections.abc import Callable
from typing import NamedTuple

from .figures import CPU_ENERGY, CPU_POWER, MEMORY_ENERGY
from .kernel import read_text
from .powercap import SYS

PROC = "/proc"

_EVENTS = {CPU_ENERGY: "energy-pkg", MEMORY_ENERGY: "energy-ram"}
_CODE = re.compile(r"event=(0x[0-9a-f]{1,16})")
_CAPABILITIES = re.compile(r"^CapEff:\s*([0-9a-f]+)$", re.MULTILINE)
_MAY = 1 << 38 | 1 << 21  # CAP_PERFMON, and CAP_SYS_ADMIN, which includes it: include/uapi/linux/capability.h
_CALLS = {"x86_64": 298}  # of perf_event_open; no other architecture has these events
_SIZE = 64  # of the first version of perf_event_attr, PERF_ATTR_SIZE_VER0
_MOST_CPUS = 2**16
_CLOSE_ON_EXEC = 8  # PERF_FLAG_FD_CLOEXEC

Counter = Callable[[], int]
"""Returns the count of an event since it was opened."""


class Event(NamedTuple):
    """An event of the kernel: its type and code, the CPUs on which it is counted, and the joules of a step."""

    type: int
    code: int
    cpus: tuple[int, ...]
    scale: float


def find_events(sys: str = SYS) -> dict[str, Event]:
    """Return the events that add up to the node, by the figure that they measure."""
    folder = f"{sys}/bus/event_source/devices/power"
    found = {}
    for kind, name in _EVENTS.items():
        file = f"{folder}/events/{name}"
        code = _CODE.fullmatch(read_text(file))
        if code is None or read_text(f"{file}.unit") != "Joules":
            continue
        try:
            cpus = _cpus(read_text(f"{folder}/cpumask"))
            found[kind] = Event(
                int(read_text(f"{folder}/type")), int(code[1], 16), cpus, float(read_text(f"{file}.scale"))
            )
        except ValueError:
            continue
    return {kind: event for kind, event in found.items() if event.cpus and event.scale > 0.0}


def _cpus(text: str) -> tuple[int, ...]:
    """Parse the kernel's list format, `0,28` or `0-1`.

    Raises:
        ValueError: The text is not a list, or has larger numbers than any machine.
    """
    found: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        if int(last or first) > _MOST_CPUS:
            msg = f"{text!r} has CPUs beyond {_MOST_CPUS}"
            raise ValueError(msg)
        found += range(int(first), int(last or first) + 1)
    return tuple(found)


def can_count_cpus(proc: str = PROC) -> bool:
    """Whether this process may count events of whole CPUs."""
    capabilities = _CAPABILITIES.search(read_text(f"{proc}/self/status"))
    if capabilities is not None and int(capabilities[1], 16) & _MAY:
        return True
    try:
        return int(read_text(f"{proc}/sys/kernel/perf_event_paranoid")) <= 0
    except ValueError:
        return False


def open_counter(type_: int, code: int, cpu: int) -> Counter:
    """Open the counter of an event on a CPU, for everything that runs there.

    Raises:
        OSError: The kernel refuses it or has no such event.
    """
    number = _CALLS.get(os.uname().machine)
    if number is None:
        msg = f"energy events are known only on x86_64, this is {os.uname().machine}"
        raise OSError(msg)
    attributes = ctypes.create_string_buffer(struct.pack("=IIQ", type_, _SIZE, code), _SIZE)
    call = ctypes.CDLL(None, use_errno=True).syscall
    call.restype = ctypes.c_long
    words = (number, ctypes.addressof(attributes), -1, cpu, -1, _CLOSE_ON_EXEC)
    file = call(*map(ctypes.c_long, words))
    if file < 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return lambda: int.from_bytes(os.read(file, 8), "little")


class Perf:
    """Counts the energy of a node's packages and memory from the beginning of a run."""

    def __init__(self, sys: str = SYS, open_: Callable[[int, int, int], Counter] = open_counter) -> None:
        """Open the counters of the events below `sys`.

        Raises:
            OSError: There are no events, or the kernel refuses one of them.
        """
        self._events = find_events(sys)
        if not self._events:
            msg = f"no event of energy in {sys}/bus/event_source/devices/power"
            raise OSError(msg)
        self._counters = {
            kind: [open_(event.type, event.code, cpu) for cpu in event.cpus] for kind, event in self._events.items()
        }
        self._began_s = 0.0
        self._before: dict[str, int] = {}

    def begin(self, now_s: float) -> None:
        """Read the counters."""
        self._began_s = now_s
        self._before = self._counts()

    def sample(self, now_s: float) -> None:
        """Do nothing, since the kernel reads the hardware's counters often enough."""

    def end(self, now_s: float) -> dict[str, float]:
        """Return the energies, and the mean power of the processors."""
        counts = self._counts()
        found = {
            kind: (counts[kind] - self._before[kind]) * event.scale
            for kind, event in self._events.items()
            # A counter that stands still was not counting, since the hardware always takes some energy.
            if counts[kind] > self._before[kind]
        }
        if CPU_ENERGY in found and now_s > self._began_s:
            found[CPU_POWER] = found[CPU_ENERGY] / (now_s - self._began_s)
        return found

    def _counts(self) -> dict[str, int]:
        return {kind: sum(count() for count in counters) for kind, counters in self._counters.items()}
