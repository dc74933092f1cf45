"""Tables of measured spaces, which `benchmarks.search` and others search.

The data belong to their authors and are not part of this project: `load_tables` reads them from a folder of yours.
"""

import csv
import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from objectives.replay.t1 import read_t1
from spaces import Choice, Constraint, Integer, Parameter, Space

Key = frozenset[tuple[str, Any]]

_SETTINGS = ("mpi", "npool", "ndiag", "nbgrp")
_WORKLOAD = ("group", "version", "nat", "nk", "ecut", "nodes")
_LEAST_SETTINGS = 20
_GEMM_DEFAULT = {
    "MWG": 64,
    "NWG": 64,
    "MDIMC": 8,
    "NDIMC": 8,
    "MDIMA": 8,
    "NDIMB": 8,
    "VWM": 1,
    "VWN": 1,
    "SA": 0,
    "SB": 0,
}
# The depth of a tile, KWG, is 32 in these tables.
_GEMM_RULES = (
    "MWG % (MDIMC * VWM) == 0",
    "NWG % (NDIMC * VWN) == 0",
    "MWG % (MDIMA * VWM) == 0",
    "NWG % (NDIMB * VWN) == 0",
    "(32 * MDIMA) % (MDIMC * NDIMC) == 0",
    "(32 * NDIMB) % (MDIMC * NDIMC) == 0",
)
_SOFTWARE_RULES = {
    "VP9": (
        "quality_is != 'rtQuality' or twoPass_is == 'unset'",
        "twoPass_is != 'noAltRef' or arnrMaxFrames + arnrStrength == 0",
    ),
    "MySQL": ("delayedInnodbLogFlush >= delayedInnodbLogWrite",),
}
# A time of this many milliseconds means that the configuration failed.
_FAILED = 1e19
_LEAST_REPEATS = 5


@dataclass(frozen=True)
class MeasuredTable:
    """A space, with the run times of its configurations in seconds; a configuration without times failed.

    `costs_s` has the whole time of an evaluation (compiling and all runs) where it was recorded, also for failures.
    """

    name: str
    space: Space
    times_s: Mapping[Key, tuple[float, ...]]
    costs_s: Mapping[Key, float] = field(default_factory=dict)


def load_tables(folder: Path) -> Iterator[MeasuredTable]:
    """Yield every table in the folder whose configurations were run several times."""
    for cache in sorted((folder / "convolution").glob("*.json.gz")):
        yield _kernel_tuner_table(cache, cache.parent / "space.json")
    runs = folder / "qe" / "pwx_silicon.csv.gz"
    if runs.is_file():
        yield from _pwx_tables(runs)


def load_syr2k(folder: Path) -> Iterator[MeasuredTable]:
    """Yield the table of the loop nest `syr2k` if the folder has it; it has one run of each configuration."""
    path = folder / "syr2k" / "small.csv.gz"
    if not path.is_file():
        return
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    pragmas, tiles = ("p0", "p1", "p2"), ("p3", "p4", "p5")
    texts = {name: tuple(sorted({row[name].strip() for row in rows})) for name in pragmas}
    sizes = {name: tuple(sorted({int(row[name]) for row in rows})) for name in tiles}
    # The untuned program has no pragma and tiles of medium size.
    parameters: list[Parameter] = [Choice(name, values, default=values[0]) for name, values in texts.items()]
    parameters += [Integer(name, values, default=values[len(values) // 2]) for name, values in sizes.items()]
    keys = [frozenset([(n, row[n].strip()) for n in pragmas] + [(n, int(row[n])) for n in tiles]) for row in rows]
    # `elapsed_sec` is the campaign's clock at the end of an evaluation, `objective` the kernel's time.
    clock = [0.0, *(float(row["elapsed_sec"]) for row in rows)]
    times = {key: (float(row["objective"]),) for key, row in zip(keys, rows, strict=True)}
    costs = {key: after - before for key, (before, after) in zip(keys, pairwise(clock), strict=True)}
    yield MeasuredTable("syr2k small", Space(parameters), times, costs)


def load_gemm(folder: Path) -> Iterator[MeasuredTable]:
    """Yield the tables of the matrix product that the folder has."""
    for cache in sorted((folder / "gemm").glob("*.json.gz")):
        with gzip.open(cache, "rt", encoding="utf-8") as file:
            stored = json.load(file)
        values = {name: stored["tune_params"][name] for name in _GEMM_DEFAULT}
        parameters = [Integer(name, tuple(found), default=_GEMM_DEFAULT[name]) for name, found in values.items()]
        rows = {frozenset((name, row[name]) for name in values): row for row in stored["cache"].values()}
        times = {
            key: (row["time"],) for key, row in rows.items() if isinstance(row["time"], float) and row["time"] < _FAILED
        }
        rules = [
            Constraint(f"rule {place}", rule, "from the kernel's authors") for place, rule in enumerate(_GEMM_RULES)
        ]
        yield MeasuredTable(f"gemm {cache.name.split('.')[0]}", Space(parameters, rules), times)


def load_software(folder: Path) -> Iterator[MeasuredTable]:
    """Yield the tables of whole programs that the folder has; a word that is not set is the text `unset`."""
    for name, rules in _SOFTWARE_RULES.items():
        path = folder / "software" / f"{name}.csv.gz"
        if not path.is_file():
            continue
        defaults = json.loads((path.parent / "defaults.json").read_text(encoding="utf-8"))[name]
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        options = {option: _number_or_word(option) for option in defaults}
        values = {option: tuple(sorted({read(row[option]) for row in rows})) for option, read in options.items()}
        parameters: list[Parameter] = [
            (Choice if option.endswith("_is") else Integer)(option, found, default=options[option](defaults[option]))
            for option, found in values.items()
        ]
        constraints = [
            Constraint(f"rule {place}", rule, "only these were measured") for place, rule in enumerate(rules)
        ]
        times = {
            frozenset((option, read(row[option])) for option, read in options.items()): (float(row["perf"]),)
            for row in rows
        }
        yield MeasuredTable(name, Space(parameters, constraints), times)


def _number_or_word(option: str) -> Callable[[str], Any]:
    return (lambda text: text or "unset") if option.endswith("_is") else int


def _kernel_tuner_table(cache: Path, definition: Path) -> MeasuredTable:
    stored = read_t1(json.loads(definition.read_text(encoding="utf-8")))
    names = [parameter.name for parameter in stored.parameters]
    with gzip.open(cache, "rt", encoding="utf-8") as file:
        rows = {frozenset((name, row[name]) for name in names): row for row in json.load(file)["cache"].values()}
    # Read milliseconds as seconds, so that run times are in the range in which time limits matter.
    times = {key: tuple(row["times"]) for key, row in rows.items() if isinstance(row["time"], float)}
    # Costs are in real seconds, because compiling a kernel of some milliseconds takes about a second.
    costs = {key: (row["compile_time"] + row["benchmark_time"]) / 1e3 for key, row in rows.items()}
    return MeasuredTable(
        f"convolution {cache.name.split('.')[0]}", Space(stored.parameters, stored.constraints), times, costs
    )


def _pwx_tables(path: Path) -> Iterator[MeasuredTable]:
    """Yield a table for each build, workload and number of nodes that has enough settings with enough repeats."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["done"] == "1" and row["wall_s"]]
    workloads: dict[tuple[str, ...], dict[Key, list[float]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        setting = frozenset((name, int(float(row[name] or 1))) for name in _SETTINGS)
        workloads[tuple(row[name] for name in _WORKLOAD)][setting].append(float(row["wall_s"]))
    for workload, found in sorted(workloads.items()):
        times = {setting: tuple(values) for setting, values in found.items() if len(values) >= _LEAST_REPEATS}
        if len(times) >= _LEAST_SETTINGS:
            yield MeasuredTable(f"pw.x {workload[0]}, {workload[-1]} nodes", _space_of(times), times)


def _space_of(times: Mapping[Key, tuple[float, ...]]) -> Space:
    """Return the space of exactly the measured settings.

    The default has the most ranks, then the fewest pools, then the smallest grid, as pw.x chooses without options.
    """
    settings = [dict(setting) for setting in times]
    default = min(settings, key=lambda setting: (-setting["mpi"], setting["npool"], setting["ndiag"]))
    values = {name: tuple(sorted({setting[name] for setting in settings})) for name in _SETTINGS}
    parameters = [Integer(name, values[name], default=default[name]) for name in _SETTINGS]
    varied = [name for name in _SETTINGS if len(values[name]) > 1]
    measured = (" and ".join(f"{name} == {setting[name]}" for name in varied) for setting in settings)
    return Space(
        parameters, [Constraint("measured", f"({') or ('.join(measured)})", "only these settings were measured")]
    )
