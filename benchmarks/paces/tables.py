"""Tables of recorded paces: printed steps and duration of a run of each configuration."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaces import Choice, Configuration, Integer, Space

DATA = Path(__file__).parent.parent / "data"

Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class PaceTable:
    """A recorded program: its `space`, and (steps, seconds) of a run of each configuration.

    The last point of a curve is the end of the run, with the last printed step. Configurations that failed are missing.
    """

    space: Space
    curves: Mapping[tuple[object, ...], Curve]

    @classmethod
    def read(cls, name: str, default: Mapping[str, str]) -> "PaceTable":
        """Read the table of a program with this default configuration."""
        with (DATA / f"{name}_paces.csv").open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        found: dict[tuple[object, ...], list[tuple[int, float]]] = {}
        for row in rows:
            key = tuple(_value(row[name]) for name in default)
            curve = found.setdefault(key, [])
            steps = int(row["steps"])
            curve.append((curve[-1][0] if steps < 0 else steps, float(row["cpu_s"])))
        places = [sorted({key[place] for key in found}) for place in range(len(default))]
        parameters = [
            _parameter(name, values, _value(text)) for (name, text), values in zip(default.items(), places, strict=True)
        ]
        return cls(Space(parameters), {key: tuple(curve) for key, curve in found.items()})

    def curve(self, configuration: Configuration) -> Curve:
        """Return the curve of a run; an empty one if it failed."""
        return self.curves.get(tuple(configuration[parameter.name] for parameter in self.space.parameters), ())

    def seconds(self, configuration: Configuration) -> float:
        """Return the duration of a run; infinity if it failed."""
        curve = self.curve(configuration)
        return curve[-1][1] if curve else float("inf")


def _value(text: str) -> str | int:
    """Return a number in hundredths as an integer, or a text."""
    try:
        return round(100 * float(text))
    except ValueError:
        return text


def _parameter(name: str, values: Sequence[object], default: object) -> Choice | Integer:
    if all(isinstance(value, int) for value in values):
        return Integer(name, tuple(values), default=default)
    return Choice(name, tuple(values), default=default)


def tables() -> dict[str, PaceTable]:
    """Return the recorded programs with their untuned defaults."""
    return {
        "LAMMPS": PaceTable.read("lammps", {"skin": "0.3", "renewal": "delay 0 every 1", "suffix": "none"}),
        "GROMACS": PaceTable.read("gromacs", {"nstlist": "10", "ewald": "GMX_NBNXN_EWALD_TABLE", "pin": "off"}),
        "pw.x": PaceTable.read("pwx", {"solver": "david 2", "mixing_beta": "0.4", "mixing_mode": "plain"}),
    }
