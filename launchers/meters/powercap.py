"""The energy of processors and memory from the kernel's powercap framework (RAPL, Intel and AMD).

Source: Linux, Documentation/power/powercap/powercap.rst: `energy_uj` counts microjoules up to `max_energy_range_uj` and
then starts again at 0. Since 2020 most kernels let only root read it.
"""

from .figures import CPU_ENERGY, CPU_POWER, MEMORY_ENERGY
from .kernel import list_names, read_number, read_text

SYS = "/sys"

_UJ_PER_J = 1e6
_KINDS = {"package": CPU_ENERGY, "dram": MEMORY_ENERGY}
"""The zones that add up to a node, by the beginning of their names.

A package includes its cores, and `psys` includes all of these.
"""


def find_zones(sys: str = SYS) -> dict[str, list[str]]:
    """Return the folders of the zones that add up to the node, by the figure that they measure."""
    top = f"{sys}/class/powercap"
    found: dict[str, list[str]] = {}
    # Another driver, intel-rapl-mmio, may list the same package again.
    for folder in (f"{top}/{name}" for name in list_names(top) if name.startswith("intel-rapl:")):
        kind = next((kind for begins, kind in _KINDS.items() if read_text(f"{folder}/name").startswith(begins)), None)
        if kind is not None:
            found.setdefault(kind, []).append(folder)
    return found


def can_read(folders: list[str]) -> bool:
    """Whether this user may read the counters of all these zones."""
    return all(read_number(f"{folder}/energy_uj") is not None for folder in folders)


class Powercap:
    """Counts the energy of a node's zones; leaves out a kind of zone if one of its counters cannot be read."""

    def __init__(self, sys: str = SYS) -> None:
        """Find the zones below `sys`.

        Raises:
            OSError: This user may read no counter there.
        """
        self._zones = {kind: folders for kind, folders in find_zones(sys).items() if can_read(folders)}
        if not self._zones:
            msg = f"no counter of energy in {sys}/class/powercap that this user may read"
            raise OSError(msg)
        self._began_s = 0.0
        self._last: dict[str, int] = {}
        self._used_uj: dict[str, int] = {}
        self._lost: set[str] = set()

    def begin(self, now_s: float) -> None:
        """Read the counters."""
        self._began_s = now_s
        self.sample(now_s)

    def sample(self, now_s: float) -> None:
        """Add the energy since the last reading, in which a counter may have wrapped around at most once."""
        del now_s
        for folder in (folder for folders in self._zones.values() for folder in folders):
            now = read_number(f"{folder}/energy_uj")
            if now is None:
                self._lost.add(folder)
                continue
            passed = now - self._last.get(folder, now)
            if passed < 0:
                most = read_number(f"{folder}/max_energy_range_uj")
                if most is None:
                    self._lost.add(folder)
                passed += most or 0
            self._last[folder] = now
            self._used_uj[folder] = self._used_uj.get(folder, 0) + passed

    def end(self, now_s: float) -> dict[str, float]:
        """Return the energies, and the mean power of the processors; leave out counters that have not changed."""
        self.sample(now_s)
        used_uj = {
            kind: sum(self._used_uj[folder] for folder in folders)
            for kind, folders in self._zones.items()
            if not self._lost.intersection(folders)
        }
        found = {kind: one_uj / _UJ_PER_J for kind, one_uj in used_uj.items() if one_uj}
        if CPU_ENERGY in found and now_s > self._began_s:
            found[CPU_POWER] = found[CPU_ENERGY] / (now_s - self._began_s)
        return found
