"""The space of the loop nest, and its table of times with a row per configuration and a column per machine."""

import csv
import gzip
from pathlib import Path

from benchmarks.loop_nest.machines import MACHINES
from benchmarks.measured_tables import MeasuredTable
from spaces import Choice, Configuration, Integer, Space

TABLE = Path(__file__).parent / "times_us.csv.gz"
SPACE = Space(
    [
        Choice("order", ("sums", "streams"), default="streams"),
        Integer("unroll", (1, 2, 4, 8), default=1),
        Integer("vector", (1, 4, 8, 16), default=4),
        Integer("packed", (0, 1), default=0),
        Integer("rows", (8, 24, 96), default=96),
        Integer("columns", (16, 48, 192), default=192),
        Integer("depth", (24, 192), default=192),
        Integer("threads", (1, 2), default=1),
    ]
)
_NAMES = tuple(parameter.name for parameter in SPACE.parameters)


def write(path: Path, configurations: list[Configuration], times_us: dict[str, list[float]]) -> None:
    with gzip.GzipFile(path, "wb", mtime=0) as packed:
        lines = [",".join([*_NAMES, *times_us])]
        for configuration, *times in zip(configurations, *times_us.values(), strict=True):
            lines.append(",".join([*(str(configuration[name]) for name in _NAMES), *(f"{time:.4g}" for time in times)]))
        packed.write(("\n".join(lines) + "\n").encode())


def load_loop_nest() -> list[MeasuredTable]:
    """Return the table of each machine, in the order of `MACHINES`."""
    with gzip.open(TABLE, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    keys = [frozenset((name, row[name] if name == "order" else int(row[name])) for name in _NAMES) for row in rows]
    return [
        MeasuredTable(
            machine.name, SPACE, {key: (float(row[machine.name]) / 1e6,) for key, row in zip(keys, rows, strict=True)}
        )
        for machine in MACHINES
    ]
