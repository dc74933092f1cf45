"""Test the stopping rule: how often its bound on the gain of further trials holds, how tight it is, when it stops.

    python -m benchmarks.stopping --data FOLDER --out results

FOLDER has the same measured tables as for `benchmarks.search`. The default sampler searches every table from many
seeds; at every fifth trial the expected gain is compared with the gain of the search in its next 20 trials. A
configuration's value is the median of its recorded runs, so the only uncertainty is that of the search, not of runs.
A gain of 1 % matters. Searches and looks are stored in --out, so the same command resumes after an interruption or
--limit.

The constant of `autotune.search.expected_gain` was fitted on the tables FITTED; the other tables check it.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import expm1, log, sqrt
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

from autotune.records.expected_gain import AHEAD
from autotune.search.base import History
from autotune.search.expected_gain import DOUBT, expected_gain_of
from autotune.search.gp_sampler import ValidSetSampler
from autotune.storage.observation import Observation
from benchmarks.measured_tables import load_syr2k, load_tables
from benchmarks.search.campaign import Limits, Task, open_tasks, run
from benchmarks.search.cell import Cell, CellFile
from benchmarks.search.method import METHODS, find
from benchmarks.search.problem import Problem

FITTED = ("A100", "MI250X", "W6600", "intel, 1 nodes", "hlrn, 1 nodes")
_METHOD = "ours"
_BUDGET = 200
_FIRST, _EVERY = 20, 5
_REPORTED = (20, 30, 50, 80, 120)
_MATTERS = 0.01
# A gain that exceeds its bound by less than this is a rounding error.
_ROUNDING = 1e-4


@dataclass(frozen=True)
class Look:
    """The bound on the gain after `trials` of a search, and the gain that followed (both relative).

    `gap` and `last_gap` are best value / optimum - 1, after `trials` and after the whole search.
    """

    space: str
    seed: int
    version: str
    doubt: float
    trials: int
    bound: float
    gained: float
    gap: float
    last_gap: float

    @property
    def held(self) -> bool:
        return self.gained <= self.bound + _ROUNDING

    @property
    def fitted(self) -> bool:
        return any(text in self.space for text in FITTED)


class LookFile:
    """Looks, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        self.looks = [Look(**json.loads(line)) for line in lines]
        self._known = {(look.space, look.seed, look.version, look.doubt) for look in self.looks}

    def has(self, cell: Cell, doubt: float) -> bool:
        return (cell.space, cell.seed, cell.version, doubt) in self._known

    def add(self, looks: Sequence[Look]) -> None:
        """Append all looks at a search in one write, so that the file never has only some of them."""
        self.looks += looks
        with self._path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(look)) + "\n" for look in looks)


def main() -> int:
    """Run the missing searches and looks, then report on all results."""
    options = _options()
    until_s = time.monotonic() + options.limit
    tables = [*load_tables(options.data), *load_syr2k(options.data)]
    problems = [Problem.of(t) for t in tables if not options.spaces or any(text in t.name for text in options.spaces)]
    if not problems:
        print(f"no measured table in {options.data}: nothing to search; --data names the folder that holds them")
        return 3
    method = METHODS[_METHOD]
    installed = find(method, [])
    assert installed is not None
    options.out.mkdir(parents=True, exist_ok=True)
    cells = CellFile(options.out / "searches.jsonl")
    tasks = list(open_tasks(problems, {method: installed}, options.seeds, {method: _BUDGET}, cells))
    run(tasks, cells, Limits(float("inf"), options.limit))
    looks = LookFile(options.out / "looks.jsonl")
    for cell in cells:
        problem = next((one for one in problems if one.name == cell.space), None)
        if problem is None or cell.version != installed.version or cell.seed >= options.seeds:
            continue
        if time.monotonic() < until_s and not looks.has(cell, options.doubt):
            seed = Task(problem, method, installed, cell.seed, _BUDGET).stream
            looks.add(list(looks_at(problem, cell, seed, options.doubt)))
    names = {problem.name for problem in problems}
    text = report([look for look in looks.looks if look.space in names and look.doubt == options.doubt])
    print(text)
    (options.out / "stopping.md").write_text(text, encoding="utf-8")
    return 0


def looks_at(problem: Problem, cell: Cell, seed: int, doubt: float) -> Iterator[Look]:
    """Yield a look at every fifth trial of a search that further trials follow."""
    sampler = ValidSetSampler(problem.space, seed=seed)
    rows = problem.rows[list(cell.places)]
    observations = [Observation(value=value) for value in cell.values]
    best = cell.best_so_far(problem.worst)
    for trials in range(_FIRST, len(best), _EVERY):
        history = History(rows[:trials], observations[:trials], StudyDirection.MINIMIZE)
        found = expected_gain_of(sampler, history, doubt=doubt)
        if found is None:
            continue
        then = best[min(trials + AHEAD, len(best)) - 1]
        gaps = (float(best[place] / problem.optimum - 1.0) for place in (trials - 1, -1))
        gained = expm1(log(best[trials - 1] / then))
        yield Look(cell.space, cell.seed, cell.version, doubt, trials, found.gain, gained, *gaps)


def report(looks: Sequence[Look]) -> str:
    """Return the report: calibration by number of trials, and the outcome of the stopping rule by space."""
    lines = []
    for title, chosen in (("fitted", [k for k in looks if k.fitted]), ("checked", [k for k in looks if not k.fitted])):
        lines += ["", f"## {title}: calibration (target {0.9:.0%})", "", *_calibration(chosen)]
        lines += ["", f"## {title}: the rule, a gain of {_MATTERS:.0%} matters", "", *_rule(chosen)]
    return "\n".join(lines[1:]) + "\n"


def _calibration(looks: Sequence[Look]) -> Iterator[str]:
    yield "| trials | looks | held (95 % interval) | bound, median | gained, median | mean | bounds under 1 %: held |"
    yield "|---|---|---|---|---|---|---|"
    # Leave out small spaces: they are soon measured completely, and then their bounds hold trivially.
    large = [look for look in looks if not look.space.startswith("pw.x")]
    for trials in (*_REPORTED, None):
        here = [look for look in large if trials is None or look.trials == trials]
        here = [look for look in here if look.trials <= _BUDGET - AHEAD]
        if not here:
            continue
        held = [look.held for look in here]
        low, high = interval(sum(held), len(held))
        bound, gained = (np.array([getattr(look, name) for look in here]) for name in ("bound", "gained"))
        calm = [look.gained <= _MATTERS for look in here if look.bound <= _MATTERS]
        small = f"{np.mean(calm):.0%} of {len(calm)}" if calm else ""
        figures = f"{np.median(bound):.3f} | {np.median(gained):.4f} | {gained.mean():.4f} | {small} |"
        share = f"{np.mean(held):.0%} ({low:.0%} to {high:.0%})"
        yield f"| {'every fifth' if trials is None else trials} | {len(here)} | {share} | {figures}"


def _rule(looks: Sequence[Look]) -> Iterator[str]:
    yield "| space | seeds | stops after (quartiles) | stopped | mean gap there | largest | mean gap after all trials |"
    yield "|---|---|---|---|---|---|---|"
    for space in sorted({look.space for look in looks}):
        ends = [_end(found) for found in _searches([look for look in looks if look.space == space])]
        after: NDArray[np.float64] = np.array([trials for trials, _, _ in ends])
        gaps, last = np.array([gap for _, gap, _ in ends]), np.array([gap for _, _, gap in ends])
        lower, middle, upper = np.quantile(after, (0.25, 0.5, 0.75))
        stopped = f"{np.mean(after < _BUDGET):.0%}"
        figures = f"{gaps.mean():.2%} | {gaps.max():.1%} | {last.mean():.2%} |"
        yield f"| {space} | {len(ends)} | {middle:.0f} ({lower:.0f} to {upper:.0f}) | {stopped} | {figures}"


def _searches(looks: Sequence[Look]) -> Iterator[list[Look]]:
    for seed in sorted({look.seed for look in looks}):
        yield sorted((look for look in looks if look.seed == seed), key=lambda look: look.trials)


def _end(looks: Sequence[Look]) -> tuple[int, float, float]:
    """Return after how many trials the rule stops, the gap then, and the gap after all trials.

    The rule stops after two looks in a row with a bound of 1 % or less.
    """
    calm = (after for before, after in pairwise(looks) if max(before.bound, after.bound) <= _MATTERS)
    first = next(calm, None)
    last = looks[-1].last_gap
    return (first.trials, first.gap, last) if first else (_BUDGET, last, last)


def interval(successes: int, count: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share (Wilson 1927)."""
    z, share = 1.96, successes / count
    middle = share + z * z / (2 * count)
    half = z * sqrt(share * (1.0 - share) / count + z * z / (4 * count * count))
    scale = 1.0 + z * z / count
    return (middle - half) / scale, (middle + half) / scale


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stopping", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True, help="folder with the measured tables")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--spaces", nargs="*", metavar="TEXT", help="only spaces whose name contains one of these")
    parser.add_argument("--doubt", type=float, default=DOUBT, help="factor on standard deviations")
    parser.add_argument("--out", type=Path, default=Path("stopping-results"), help="folder for the results")
    parser.add_argument("--limit", type=float, default=float("inf"), help="start nothing after this many seconds")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
