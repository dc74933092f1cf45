"""Disturbance: what else the machine did during a run, as far as its kernel shows it."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from math import isfinite
from typing import Self

_WORTH_A_WORD = 0.01


@dataclass(frozen=True)
class Disturbance:
    """What others did to a run, on the node of its supervisor. None is what cannot be read there.

    Shares of its time:
    - `waited_share`: of the time in which its threads could run, they waited for a core, behind others or each other.
    - `others_share`: of the time of its CPUs, processes of others used this much; `beside_share` of all other CPUs, and
      `sibling_share` of those among them that are hardware threads of its cores.
    - `stolen_share`: of the time of its CPUs, the hypervisor gave this much to other machines.
    - `throttled_share`: of the time in which its threads could run, the quota of their cgroup stopped them.
    - `taken_share`: of the run's whole time, others kept a thread of it, on average, from running by any of these, or
      from having its core for itself.

    `cpu_pressure`, `memory_pressure` and `io_pressure` are the shares of the time in which something stalled for lack
    of that: in its cgroup where there is one, on the whole node otherwise. `thermal_throttles` counts how often its
    cores were slowed down for their heat, `involuntary_switches` how often its threads lost their core, `major_faults`
    the pages that were not in memory; `read_bytes` came from disks, since the page cache did not have them.
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
        """Read it from figures by name, whatever else is among them."""
        figures = {field.name: known.get(field.name) for field in fields(cls)}
        return cls(**{name: float(value) for name, value in figures.items() if _is_figure(value)})  # type: ignore[arg-type]

    def as_dict(self) -> dict[str, float]:
        """Return the figures that could be read, by name."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    def describe(self) -> str:
        """Say what others took from the run; empty if that is not known."""
        if self.taken_share is None:
            return ""
        used = f", and used {self.others_share:.0%} of its cores" if self.others_share is not None else ""
        if self.sibling_share and self.sibling_share >= _WORTH_A_WORD:
            used += f", {self.sibling_share:.0%} of their other hardware threads"
        return f"others kept it from running for {self.taken_share:.0%} of its time{used}"


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0.0
