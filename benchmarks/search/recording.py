"""Evaluations from a table, counted in the same way for every method: each new configuration counts once."""

import time
from collections.abc import Sequence

from benchmarks.search.cell import INVALID
from benchmarks.search.problem import Problem


class BudgetSpentError(Exception):
    """The search is over; the message is why: "budget" or "space"."""


class Recording:
    """Answers evaluations from a table; a repeated configuration gets its answer again and is not counted."""

    def __init__(self, problem: Problem, budget: int) -> None:
        self.places: list[int] = []
        self.values: list[float | None] = []
        self.costs_s: list[float] = []
        self.overhead_s: list[float] = []
        self._problem = problem
        self._budget = budget
        self._known: dict[tuple[int, ...], float | None] = {}
        self._new_valid = 0
        self._since_s = time.perf_counter()

    def evaluate(self, row: Sequence[int]) -> float | None:
        """Return the value of a configuration, None if it fails or is invalid.

        Raises:
            BudgetSpentError: no further evaluation is allowed.
        """
        asked_s = time.perf_counter()
        key = tuple(int(index) for index in row)
        if key not in self._known:
            if len(self.places) >= self._budget:
                raise BudgetSpentError("budget")
            if self._new_valid >= self._problem.size:
                raise BudgetSpentError("space")
            self._count(key, asked_s - self._since_s)
            self._since_s = time.perf_counter()
        return self._known[key]

    def _count(self, key: tuple[int, ...], overhead_s: float) -> None:
        place = self._problem.places.get(key, INVALID)
        value = None if place == INVALID else float(self._problem.values[place])
        if value is not None and value != value:  # noqa: PLR0124  NaN: it failed
            value = None
        self._new_valid += place != INVALID
        self._known[key] = value
        self.places.append(place)
        self.values.append(value)
        self.costs_s.append(self._problem.invalid_cost_s if place == INVALID else float(self._problem.costs_s[place]))
        self.overhead_s.append(overhead_s)

    @property
    def over(self) -> str | None:
        """Why no further evaluation is allowed; None if one is."""
        if len(self.places) >= self._budget:
            return "budget"
        return "space" if self._new_valid >= self._problem.size else None
