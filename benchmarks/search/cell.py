"""Cells of the comparison (one search of a method on a space with one seed), and the file that stores them."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Key = tuple[str, str, str, int]

INVALID = -1


@dataclass(frozen=True)
class Cell:
    """The evaluations of one search, in order; arrays are (n,).

    Attributes:
        places: Rows of the problem; -1 for a configuration that broke a constraint.
        values: Values; None for a failure.
        overhead_s: Time of the method for each proposal.
        ended: Why the search stopped: "budget", "space" (all configurations evaluated), "method" (by itself), "repeats"
            (it proposed only known configurations), "time" (time limit) or "error: ...".
    """

    space: str
    method: str
    version: str
    seed: int
    budget: int
    places: Sequence[int]
    values: Sequence[float | None]
    costs_s: Sequence[float]
    overhead_s: Sequence[float]
    ended: str

    @property
    def key(self) -> Key:
        return (self.space, self.method, self.version, self.seed)

    @property
    def broken(self) -> bool:
        return self.ended.startswith("error")

    def best_so_far(self, worst: float) -> NDArray[np.float64]:
        """Return the best value after each evaluation, (n,): `worst` until one worked."""
        values = [worst if value is None else value for value in self.values]
        return np.minimum.accumulate(np.array(values, dtype=float)) if values else np.zeros(0)


class CellFile:
    """Cells, one JSON object a line, appended as soon as they are done."""

    def __init__(self, path: Path) -> None:
        self._path = path
        if path.is_file() and not path.read_bytes().endswith(b"\n"):
            # A line that was being written when the command was stopped must not spoil the next one.
            with path.open("a", encoding="utf-8") as file:
                file.write("\n")
        self._cells: dict[Key, Cell] = {cell.key: cell for cell in self._read()}

    def __iter__(self) -> Iterator[Cell]:
        return iter(self._cells.values())

    def has(self, key: Key, budget: int) -> bool:
        """Return whether the cell is there with at least that budget."""
        cell = self._cells.get(key)
        return cell is not None and (cell.budget >= budget or cell.ended == "space")

    def forget_broken(self) -> None:
        """Drop the cells that ended with an error, so that they run again."""
        self._cells = {key: cell for key, cell in self._cells.items() if not cell.broken}

    def add(self, cell: Cell) -> None:
        """Append a cell; it replaces one with a smaller budget."""
        rounded = replace(
            cell,
            costs_s=[_rounded(cost) for cost in cell.costs_s],
            overhead_s=[_rounded(overhead) for overhead in cell.overhead_s],
        )
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(rounded)) + "\n")
        self._cells[cell.key] = rounded

    def _read(self) -> Iterator[Cell]:
        if not self._path.is_file():
            return
        for line in self._path.read_text(encoding="utf-8").splitlines():
            try:
                stored: dict[str, Any] = json.loads(line)
            except json.JSONDecodeError:
                continue  # it was cut off
            yield Cell(**stored)


def _rounded(seconds: float) -> float:
    return float(f"{seconds:.5g}")
