"""Recorded paces, to be replayed: what a run of a configuration tells and takes."""

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spaces import Choice, Configuration, Integer, Space

DATA = Path(__file__).parent.parent / "data"

Curve = tuple[tuple[int, float], ...]


@dataclass(frozen=True)
class PaceTable:
    """A program that was recorded: its `space`, and (steps, seconds) of the runs of its configurations.

    A curve ends with the end of the run, under the last step that was told. What was not recorded had failed.
    """

    space: Space
    curves: Mapping[tuple[object, ...], Curve]

    @classmethod
    def read(cls, name: str, default: Mapping[str, str]) -> "PaceTable":
        """Read the table of a program, whose default configuration is that."""
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

    def told(self, configuration: Configuration) -> Curve:
        """Return what a run tells, and its end; nothing if it fails."""
        return self.curves.get(tuple(configuration[parameter.name] for parameter in self.space.parameters), ())

    def seconds(self, configuration: Configuration) -> float:
        """Return how long a run takes."""
        told = self.told(configuration)
        return told[-1][1] if told else float("inf")


def _value(text: str) -> str | int:
    """Return a number in hundredths, or a text."""
    try:
        return round(100 * float(text))
    except ValueError:
        return text


def _parameter(name: str, values: Sequence[object], default: object) -> Choice | Integer:
    if all(isinstance(value, int) for value in values):
        return Integer(name, tuple(values), default=default)
    return Choice(name, tuple(values), default=default)


def tables() -> dict[str, PaceTable]:
    """Return the recorded programs, with what they do when nobody tunes them."""
    return {
        "LAMMPS": PaceTable.read("lammps", {"skin": "0.3", "renewal": "delay 0 every 1", "suffix": "none"}),
        "GROMACS": PaceTable.read("gromacs", {"nstlist": "10", "ewald": "GMX_NBNXN_EWALD_TABLE", "pin": "off"}),
        "pw.x": PaceTable.read("pwx", {"solver": "david 2", "mixing_beta": "0.4", "mixing_mode": "plain"}),
    }
