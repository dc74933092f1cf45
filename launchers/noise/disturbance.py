"""Disturbance: other load on the machine during a run, as far as its kernel shows it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite, log1p
from typing import Self

NOTABLE_SHARE = 0.05
"""The share of a run's time, taken by others, from which on it is mentioned with the run's result."""

_WORTH_A_WORD = 0.01
_MOST_TAKEN = 0.99


@dataclass(frozen=True)
class Disturbance:
    """Other load on the node of a run's supervisor. None for what cannot be read there.

    Attributes:
        waited_share: The share of the time in which its threads could run that they waited for a core, behind others or
            each other.
        others_share: The share of the time of its CPUs that others' processes used.
        beside_share: The share of the time of all other CPUs that was used.
        sibling_share: The same, of those other CPUs that are hardware threads of its cores.
        stolen_share: The share of the time of its CPUs that the hypervisor gave to other machines.
        throttled_share: The share of the time in which its threads could run that the quota of their cgroup stopped
            them.
        taken_share: The share of the run's time in which others, by any of these, kept a thread from running or from
            having its core to itself; averaged over the threads.
        cpu_pressure: The share of the time in which something stalled for lack of CPU, in the run's cgroup if there is
            one, otherwise on the whole node.
        memory_pressure: The same, for lack of memory.
        io_pressure: The same, for lack of I/O.
        thermal_throttles: How often its cores were slowed down because of heat.
        involuntary_switches: How often its threads lost their core.
        major_faults: How many pages had to be read because they were not in memory.
        read_bytes: Bytes read from disks, since the page cache did not have them.
    """

    waited_share: float | None = None
    others_share: float | None = None
    beside_share: float | None = None
    sibling_share: float | None = None
    stolen_share: float | None = None
    throttled_share: float | None = None
    taken_share: float | None = None
    cpu_pressure: float | None = None
    memory_pressure: float | None = None
    io_pressure: float | None = None
    thermal_throttles: float | None = None
    involuntary_switches: float | None = None
    major_faults: float | None = None
    read_bytes: float | None = None

    @classmethod
    def from_figures(cls, known: Mapping[str, object]) -> Self:
        """Return the disturbance from figures by name, ignoring everything else."""
        figures = {field.name: known.get(field.name) for field in fields(cls)}
        return cls(**{name: float(value) for name, value in figures.items() if _is_figure(value)})  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, float]:
        """Return the known figures by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @property
    def slowdown(self) -> float:
        """The logarithm of how many times longer the run took because of others; 0 if that is not known."""
        return -log1p(-min(self.taken_share or 0.0, _MOST_TAKEN))

    def describe(self) -> str:
        """Say what others took from the run; empty if that is not known."""
        if self.taken_share is None:
            return ""
        used = f" and used {self.others_share:.0%} of its cores" if self.others_share is not None else ""
        if self.sibling_share and self.sibling_share >= _WORTH_A_WORD:
            used += f", {self.sibling_share:.0%} of their other hardware threads"
        return f"others took {self.taken_share:.0%} of its time{used}"


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0.0
