"""Lines of text that show the description of a machine."""

from collections.abc import Mapping
from typing import Any

from autotune.machines.description import MachineDescription

_REMARKS = frozenset({"measured.at", "measured.notes", "measured.spread"})
_NOT_SAID = "-"
_BINARY = (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10))
_DECIMAL = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3))


def description_lines(machine: MachineDescription) -> list[str]:
    """Return a line for each fact with its value and the number of its source, then the sources, then the notes."""
    given = {path: value for path, value in machine.given.items() if path not in _REMARKS}
    sources = dict.fromkeys(filter(None, map(machine.source, given)))
    numbers = {source: number for number, source in enumerate(sources, start=1)}
    values = {path: _with_spread(machine, path, value) for path, value in given.items()}
    width = max(map(len, values), default=0)
    value_width = max(map(len, values.values()), default=0)
    lines = [f"{machine.name}: {machine.title}" if machine.title else machine.name]
    for path, value in values.items():
        number = numbers.get(machine.source(path))
        reference = f"[{number}]" if number else _NOT_SAID
        lines.append(f"  {path:<{width}}  {value:<{value_width}}  {reference}")
    lines += [f"[{number}] {source}" for source, number in numbers.items()]
    return lines + [f"note: {note}" for note in machine.measured.notes or ()]


def text_with_unit(name: str, value: object) -> str:
    """Return a value with the unit in its fact's name: `bandwidth_bytes_per_s`, `flops`, `latency_s`."""
    if isinstance(value, Mapping):
        unit = name.removesuffix("_by_cores")
        unit = "flops" if "flops" in unit else "_bytes_per_s"
        return ", ".join(f"{key}: {text_with_unit(unit, item)}" for key, item in value.items())
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    return _quantity(name, value)


def _quantity(name: str, value: float) -> str:
    if name.endswith("bytes"):
        unit, size = next(((unit, size) for unit, size in _BINARY if value >= size), ("B", 1))
        return f"{value / size:.4g} {unit}"
    if name.endswith("_s") and not name.endswith("_per_s"):
        return f"{value * 1e6:.4g} us"
    for ending, unit in (("_bytes_per_s", "B/s"), ("_hz", "Hz")):
        if name.endswith(ending):
            return _decimal(value, unit)
    return _decimal(value, "flop/s") if "flops" in name else f"{value:.10g}"


def _decimal(value: float, unit: str) -> str:
    prefix, size = next(((prefix, size) for prefix, size in _DECIMAL if value >= size), ("", 1.0))
    return f"{value / size:.4g} {prefix}{unit}"


def _with_spread(machine: MachineDescription, path: str, value: Any) -> str:  # noqa: ANN401  a fact of any type
    shown = text_with_unit(path, value)
    spread = (machine.measured.spread or {}).get(path.removeprefix("measured."))
    return shown if spread is None else f"{shown} (repeats differ by {spread:.0%})"
