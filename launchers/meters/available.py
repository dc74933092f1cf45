"""Which meters this machine has, and why others are missing, for people."""

from collections.abc import Iterable
from dataclasses import dataclass

from .amd import amd_cards
from .figures import CPU_ENERGY, CPU_POWER, ENERGY, GPU_ENERGY, MEMORY_ENERGY, UNITS
from .nvml import LIBRARY, Nvml
from .perf import PROC, can_count_cpus, find_events
from .powercap import SYS, can_read, find_zones

_OF_PROCESSORS = (CPU_ENERGY, CPU_POWER)


@dataclass(frozen=True)
class MeterFinding:
    """A meter that was looked for on this machine.

    Attributes:
        name: Its name.
        tells: The figures that it measures.
        found: The counters or cards that were found; empty if it is missing.
        why: Why it is missing.
    """

    name: str
    tells: tuple[str, ...]
    found: str = ""
    why: str = ""

    def __str__(self) -> str:
        """Return the finding as a line of text."""
        return f"{self.name}: {self.found or f'none ({self.why})'}"


def find_meters(
    sys: str = SYS, library: str = LIBRARY, proc: str = PROC, *, cards: bool = True
) -> tuple[MeterFinding, ...]:
    """Look for all known meters; with `cards` also for those of cards, which loads NVIDIA's library."""
    return (
        _rapl("energy of processors (powercap, perf)", _OF_PROCESSORS, sys, proc),
        _rapl("energy of memory (powercap, perf)", (MEMORY_ENERGY,), sys, proc),
        *((_cards(sys, library),) if cards else ()),
    )


def why_absent(names: Iterable[str], gpus: int, meters: tuple[MeterFinding, ...]) -> str:
    """Say why figures cannot be measured on this machine; empty if nothing is known against it.

    The whole energy of a run on `gpus` GPUs is that of processors and cards.
    """
    whole = (CPU_ENERGY, *([GPU_ENERGY] if gpus else []))
    for name in names:
        for part in whole if name == ENERGY else (name,):
            meter = next((one for one in meters if part in one.tells), None)
            if meter is not None and meter.why:
                return f"no meter of this machine measures {name}: {meter}"
    return ""


def _rapl(name: str, tells: tuple[str, ...], sys: str, proc: str) -> MeterFinding:
    folders, event = find_zones(sys).get(tells[0], []), find_events(sys).get(tells[0])
    # If powercap is readable, it is used instead of perf's events.
    is_read = any(can_read(of_kind) for of_kind in find_zones(sys).values())
    if event is not None and can_count_cpus(proc) and not is_read:
        return MeterFinding(name, tells, found=f"{_counters(len(event.cpus))} by perf_event_open")
    if not folders and event is not None and not is_read:
        why = "this user may not count whole CPUs; root can allow it with sysctl kernel.perf_event_paranoid=0"
        return MeterFinding(name, tells, why=why)
    if not folders:
        return MeterFinding(
            name, tells, why=f"{sys}/class/powercap shows none; virtual machines and containers often do not"
        )
    if not can_read(folders):
        return MeterFinding(
            name, tells, why=f"this user may not read {folders[0]}/energy_uj; root can allow it with chmod a+r"
        )
    return MeterFinding(name, tells, found=_counters(len(folders)))


def _counters(count: int) -> str:
    return f"{count} counter{'s' if count > 1 else ''}"


def _cards(sys: str, library: str) -> MeterFinding:
    name, tells = "cards (NVML, amdgpu)", tuple(one for one in UNITS if one.startswith("gpu_"))
    why = ""
    try:
        there = [("NVIDIA", reader) for _, reader in Nvml(library).cards()]
    except OSError as error:
        there, why = [], str(error)
    there += [("AMD", reader) for _, reader in amd_cards(sys)]
    if not there:
        return MeterFinding(name, tells, why=why or "the driver lists none")
    described = [
        f"{vendor} {'with' if reader().energy_j is not None else 'without'} a counter of energy"
        for vendor, reader in there
    ]
    return MeterFinding(name, tells, found=", ".join(described))
