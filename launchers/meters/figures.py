"""The figures that meters measure in a run: their names, their units, and parsing of stored ones."""

from collections.abc import Mapping
from math import isfinite

ENERGY = "energy_j"
CPU_ENERGY = "cpu_energy_j"
MEMORY_ENERGY = "memory_energy_j"
CPU_POWER = "cpu_mean_power_w"
GPU_ENERGY = "gpu_energy_j"
GPU_POWER = "gpu_mean_power_w"
GPU_PEAK_POWER = "gpu_peak_power_w"
GPU_PEAK_MEMORY = "gpu_peak_memory_bytes"
GPU_BUSY = "gpu_busy_share"

UNITS = {
    ENERGY: "J",
    CPU_ENERGY: "J",
    MEMORY_ENERGY: "J",
    CPU_POWER: "W",
    GPU_ENERGY: "J",
    GPU_POWER: "W",
    GPU_PEAK_POWER: "W",
    GPU_PEAK_MEMORY: "B",
    GPU_BUSY: "",
}
"""The figures, each with its unit.

`cpu_energy_j` and `memory_energy_j` are those of all processors and all memory of the node, whoever used them; the
others are of the run's cards together. `energy_j` is the sum. `gpu_peak_memory_bytes` is that of the fullest card;
`gpu_busy_share` is the share of the run's time in which a card computed, averaged over the cards.
"""

OF_THE_NODE = frozenset({ENERGY, CPU_ENERGY, MEMORY_ENERGY, CPU_POWER})
"""The figures that include everything that runs on the node."""

OF_THE_CARDS = frozenset(UNITS) - OF_THE_NODE - {MEMORY_ENERGY}
"""The figures of a run's cards."""


def read_figures(known: object) -> dict[str, float]:
    """Return the valid figures among stored values, ignoring everything else."""
    values = known if isinstance(known, Mapping) else {}
    return {name: float(values[name]) for name in UNITS if name in values and _is_figure(values[name])}


def with_sum(figures: Mapping[str, float], gpus: int) -> dict[str, float]:
    """Return the figures of a run on `gpus` GPUs, with the total energy if that of its processors and cards is known.

    The memory's energy is added where it is reported separately; many machines include it with the processors.
    """
    parts = [CPU_ENERGY, *([GPU_ENERGY] if gpus else [])]
    if any(part not in figures for part in parts):
        return dict(figures)
    return {**figures, ENERGY: sum(figures[part] for part in parts) + figures.get(MEMORY_ENERGY, 0.0)}


def _is_figure(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value) and value >= 0.0
