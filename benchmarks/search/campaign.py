"""Run the missing cells seed by seed, so that an interruption leaves all methods with about equally many seeds."""

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

from benchmarks.search.cell import Cell, CellFile
from benchmarks.search.child import Child
from benchmarks.search.method import Installed, Method
from benchmarks.search.problem import Problem
from benchmarks.search.recording import Recording


@dataclass(frozen=True)
class Task:
    """One cell to run."""

    problem: Problem
    method: Method
    installed: Installed
    seed: int
    budget: int

    @property
    def stream(self) -> int:
        """The random seed of the method; it depends on the space, so that errors on spaces are independent."""
        return crc32(f"{self.problem.name} {self.seed}".encode()) >> 1


@dataclass(frozen=True)
class Limits:
    """Time limits: `cell_s` for one search, `all_s` for the command, which completes the current search."""

    cell_s: float
    all_s: float


def open_tasks(
    problems: Sequence[Problem],
    methods: Mapping[Method, Installed],
    seeds: int,
    budgets: Mapping[Method, int],
    cells: CellFile,
) -> Iterator[Task]:
    """Yield the cells that are not in the file."""
    for seed in range(seeds):
        for method, installed in methods.items():
            for problem in problems:
                if not cells.has((problem.name, method.name, installed.version, seed), budgets[method]):
                    yield Task(problem, method, installed, seed, budgets[method])


def run(tasks: Sequence[Task], cells: CellFile, limits: Limits) -> int:
    """Run tasks until time is up; return the number completed."""
    until_s = time.monotonic() + limits.all_s
    children: dict[tuple[str, str], Child] = {}
    files: dict[str, Path] = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for done, task in enumerate(tasks):
            if time.monotonic() > until_s:
                return done
            if task.problem.name not in files:
                files[task.problem.name] = task.problem.hand_out(folder)
            place = (task.installed.python, task.method.script)
            if task.method.run is None and place not in children:
                children[place] = stack.enter_context(Child(*place))
            cell = _run(task, children.get(place), files[task.problem.name], limits.cell_s)
            cells.add(cell)
            print(
                f"  {task.seed:3} {task.method.name:26} {task.problem.name:58} {_told(task.problem, cell)}", flush=True
            )
    return len(tasks)


def _run(task: Task, child: Child | None, file: Path, limit_s: float) -> Cell:
    started = child is None or child.ready()
    recording = Recording(task.problem, task.budget)
    if task.method.run is not None:
        ended = task.method.run(task.problem, recording, task.stream)
    elif child is None or not started:
        ended = "error: the peer's process did not start"
    else:
        request = {
            "problem": str(file),
            "options": dict(task.method.options),
            "seed": task.stream,
            # Some methods plan with their budget, so it must not exceed the number of configurations.
            "budget": min(task.budget, task.problem.size),
        }
        ended = child.search(request, recording, limit_s)
    return Cell(
        task.problem.name,
        task.method.name,
        task.installed.version,
        task.seed,
        task.budget,
        recording.places,
        recording.values,
        recording.costs_s,
        recording.overhead_s,
        ended,
    )


def _told(problem: Problem, cell: Cell) -> str:
    best = cell.best_so_far(problem.worst)
    found = f"{best[-1] / problem.optimum - 1:8.1%} above the best" if len(best) else "nothing"
    return f"{len(best):4} evaluations, {found}, {sum(cell.overhead_s):6.2f} s  ({cell.ended})"
