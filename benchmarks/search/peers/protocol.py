"""The child's side of the protocol: JSON objects, one per line, over standard input and output.

Every search begins with the default configuration, as the project's own does; `Oracle.known` has its value.

The child writes `{"ready": true}` when it can serve. A request is
`{"problem": path, "options": {...}, "seed": n, "budget": n}`. While it is served the child writes
`{"ask": [places of values]}` and reads `{"value": number or null}` or `{"stop": reason}`; it ends with
`{"done": reason}` or `{"error": text}`. This file imports nothing of the project: it runs in the peers' environment.
"""

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

Row = tuple[int, ...]

# Ends a method that proposes only known or only invalid configurations.
_REPEATS = 2_000
_REJECTIONS = 200


class Stop(BaseException):
    """The search is over. A BaseException, so that no library handles it as an error."""


class Problem:
    """Parameters with their values, rules as Python expressions, and all valid configurations as places of values."""

    def __init__(self, path: str) -> None:
        stored = json.loads(Path(path).read_text(encoding="utf-8"))
        self.names: list[str] = [p["name"] for p in stored["parameters"]]
        self.values: list[list[Any]] = [p["values"] for p in stored["parameters"]]
        self.ordered: list[bool] = [p["ordered"] for p in stored["parameters"]]
        self.rules: list[str] = stored["rules"]
        self.default: list[int] = stored["default"]
        self.valid = np.array(stored["valid"], dtype=np.int64)
        self.place = {tuple(row): place for place, row in enumerate(self.valid.tolist())}
        sizes = np.array([max(len(values) - 1, 1) for values in self.values])
        self._scale = np.where(self.ordered, sizes, 1)

    @property
    def sizes(self) -> list[int]:
        return [len(values) for values in self.values]

    def distances(self, row: Sequence[float]) -> np.ndarray:
        """Return the Euclidean distance to every valid configuration, (n,): a choice that differs is at distance 1."""
        apart = np.abs(self.valid - np.asarray(row)) / self._scale
        apart = np.where(self.ordered, apart, apart > 0)
        return np.sqrt((apart**2).sum(axis=1))


class Oracle:
    """Evaluates configurations by asking the parent; one that was evaluated is answered from memory."""

    def __init__(self, problem: Problem, seed: int, say: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self.problem = problem
        self.worst: float | None = None
        self.known: dict[Row, float | None] = {}
        self._say = say
        self._rng = np.random.default_rng([seed, 1])
        self._repeats = 0
        self._fresh = np.ones(len(problem.valid), dtype=bool)

    def evaluate(self, row: Sequence[int]) -> float | None:
        """Return the value of a configuration; None: it failed, or breaks a constraint."""
        key = tuple(int(index) for index in row)
        if key in self.known:
            self._repeated(_REPEATS)
            return self.known[key]
        answer = self._say({"ask": key})
        if "stop" in answer:
            raise Stop(answer["stop"])
        self._repeats = 0
        value: float | None = answer["value"]
        self.known[key] = value
        if key in self.problem.place:
            self._fresh[self.problem.place[key]] = False
        if value is not None:
            self.worst = value if self.worst is None else max(self.worst, value)
        return value

    def rejected(self) -> None:
        """Count an invalid proposal that costs nothing."""
        self._repeated(_REJECTIONS)

    def _repeated(self, limit: int) -> None:
        self._repeats += 1
        if self._repeats > limit:
            raise Stop("repeats")

    def nearest(self, row: Sequence[float]) -> Row:
        """Return the valid configuration not evaluated yet that is nearest; of several, one at random."""
        if not self._fresh.any():
            raise Stop("space")
        distances = np.where(self._fresh, self.problem.distances(row), np.inf)
        least = np.flatnonzero(distances <= distances.min() + 1e-9)
        return tuple(int(index) for index in self.problem.valid[self._rng.choice(least)])


Search = Callable[[Oracle, dict[str, Any], int, int], None]


def serve(search: Search) -> None:
    """Serve requests until standard input ends; whatever libraries print goes to standard error."""
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as out:
        os.dup2(2, 1)

        def write(message: dict[str, Any]) -> None:
            out.write(json.dumps(message) + "\n")
            out.flush()

        def say(message: dict[str, Any]) -> dict[str, Any]:
            write(message)
            return json.loads(sys.stdin.readline() or '{"stop": "gone"}')

        write({"ready": True})
        for request in _requests():
            oracle = Oracle(_problem(request["problem"]), request["seed"], say)
            try:
                oracle.evaluate(oracle.problem.default)
                search(oracle, request["options"], request["seed"], request["budget"])
            except Stop as stop:
                write({"done": str(stop)})
            except Exception as error:  # noqa: BLE001  the parent reports it, and continues with the next cell
                write({"error": f"{type(error).__name__}: {error}"})
            else:
                write({"done": "method"})


_problem = lru_cache(maxsize=32)(Problem)


def _requests() -> Iterator[dict[str, Any]]:
    with contextlib.suppress(KeyboardInterrupt):
        while line := sys.stdin.readline():
            yield json.loads(line)
