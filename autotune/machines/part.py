"""Measured figures of a part of a machine's cores."""

from collections.abc import Mapping
from itertools import pairwise

from autotune.machines.description import MeasuredFigures


def for_cores(figures: MeasuredFigures, cores: int) -> MeasuredFigures:
    """Return the figures of a part of the cores: the rates of all cores become those of `cores`.

    Between measured numbers of cores, rates are interpolated linearly. Rates not measured by cores are dropped.
    """
    changed: dict[str, float | None] = {}
    for name, table in (
        ("memory_bandwidth_bytes_per_s", figures.memory_bandwidth_by_cores),
        ("blas_flops", figures.blas_flops_by_cores),
    ):
        changed[name] = _between({int(key): rate for key, rate in (table or {}).items() if key.isdecimal()}, cores)
    if cores < 2:
        changed |= {"mpi_latency_s": None, "mpi_bandwidth_bytes_per_s": None}
    return figures.model_copy(update=changed)


def _between(rates: Mapping[int, float], cores: int) -> float | None:
    if cores in rates:
        return rates[cores]
    for low, high in pairwise(sorted(rates)):
        if low < cores < high:
            return rates[low] + (rates[high] - rates[low]) * (cores - low) / (high - low)
    return None
