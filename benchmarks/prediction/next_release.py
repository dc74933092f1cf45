"""Measure what a study after an upgrade gains from the study before it.

    python -m benchmarks.prediction.next_release [--seeds 20] [--trials 40] [--problems others]

`benchmarks/data/releases.csv.gz` has the work of releases of two solvers for a few problems, with every combination of
some options. A study of one release comes first, then studies of the next one, which start from the default. All see
work with 1 % noise; gaps are of the true work. `z3 factor`, `z3 factors` and `z3 jobs` chose the method.
"""

import argparse
import csv
import gzip
from collections import Counter, defaultdict
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from optuna.study import StudyDirection

from autotune.performance.earlier_study import EarlierStudy
from autotune.records.measurement import Measured, Setting
from autotune.search.base import History, SpaceExhaustedError
from autotune.search.gp_sampler import ValidSetSampler
from autotune.search.guidance.earlier_values import TOLERANCE
from autotune.storage.observation import Observation
from objectives.base import Metric
from spaces import Choice, Space
from spaces.valid_set.valid_set import Indices

DATA = Path(__file__).parents[1] / "data" / "releases.csv.gz"
AFTER, NOISE = (3, 8, 20), 0.01
SETTING = Setting("solver", "box", "old", Metric("work", "", "minimize"), source="study old", identity="old")


@dataclass(frozen=True)
class Release:
    """A release: its space, and the work of every configuration in the space's order, NaN where it gave up."""

    name: str
    space: Space
    work: NDArray[np.float64]

    def loss(self, rows: Indices) -> NDArray[np.float64]:
        """Return by how much more work than the least value indexes (n, p) need; +inf where it gave up."""
        places = {row.tobytes(): place for place, row in enumerate(self.space.all_indices())}
        work = self.work[[places[row.tobytes()] for row in np.ascontiguousarray(rows)]]
        return np.where(np.isnan(work), np.inf, work / np.nanmin(self.work) - 1.0)


def releases() -> dict[str, list[Release]]:
    """Return the releases of each program and problem, the oldest first; the first configuration is the default."""
    read: dict[str, dict[str, list[tuple[dict[str, str], float]]]] = defaultdict(lambda: defaultdict(list))
    with gzip.open(DATA, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            options = dict(word.split("=") for word in row["configuration"].split())
            read[row["problem"]][row["release"]].append((options, float(row["work"] or "nan")))
    found: dict[str, list[Release]] = defaultdict(list)
    for problem, of_problem in read.items():
        for name, rows in of_problem.items():
            values = {key: sorted({options[key] for options, _ in rows}) for key in rows[0][0]}
            space = Space([Choice(key, values[key], default=rows[0][0][key]) for key in values])
            work = {space.indices([options]).tobytes(): one for options, one in rows}
            found[problem].append(Release(name, space, np.array([work[row.tobytes()] for row in space.all_indices()])))
    return found


def search(release: Release, sampler: ValidSetSampler, seed: int, trials: int) -> tuple[Indices, NDArray[np.float64]]:
    """Return the configurations of a study as value indexes, (n, p), and their measured work, (n,)."""
    rng, rows = np.random.default_rng([seed, 1]), np.empty((0, len(release.space.parameters)), dtype=np.int32)
    seen: list[Observation] = []
    with suppress(SpaceExhaustedError):
        while len(rows) < trials:
            proposal = release.space.indices([sampler.propose(History(rows, seen, StudyDirection.MINIMIZE))])
            value = (1.0 + release.loss(proposal)[0]) * np.exp(NOISE * rng.standard_normal())
            rows = np.concatenate([rows, proposal])
            seen.append(Observation(value=value) if np.isfinite(value) else Observation())
    return rows, np.array([np.inf if one.value is None else one.value for one in seen])


def main() -> int:
    """Print the gaps of both searches, where the earlier winner is still within 2 % and where not."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--trials", type=int, default=40, help="trials of the earlier study")
    parser.add_argument("--problems", default="", help="only problems whose name contains this text")
    options = parser.parse_args()
    gaps: dict[tuple[str, str], list[list[float]]] = defaultdict(list)
    counts = Counter[str]()
    chosen = {name: found for name, found in releases().items() if options.problems in name}
    for name, old, new in ((name, *pair) for name, found in chosen.items() for pair in pairwise(found)):
        # A release that changes nothing here is no test.
        for seed in range(0 if np.array_equal(old.work, new.work, equal_nan=True) else options.seeds):
            rows, work = search(old, ValidSetSampler(old.space, seed=seed), seed, options.trials)
            pairs = zip(old.space.decode(rows), work.tolist(), strict=True)
            known = [Measured(SETTING, one, value) for one, value in pairs if np.isfinite(value)]
            earlier = EarlierStudy.find(new.space, SETTING, known)
            assert earlier is not None
            loss = float(new.loss(rows[[work.argmin()]])[0])
            kind = "held" if loss <= TOLERANCE else "lost"
            for method in ("from the default", "from the earlier study"):
                sampler = ValidSetSampler(new.space, seed=seed)
                if method == "from the earlier study":
                    sampler.set_earlier_values(earlier.values)
                    sampler.start_with([earlier.winner])
                tried, took = search(new, sampler, seed, AFTER[-1])
                best = [tried[[took[:count].argmin()]] for count in AFTER]
                gaps[kind, method].append([float(new.loss(one)[0]) for one in best])
            of_winner = took[:3][(tried[:3] == rows[work.argmin()]).all(axis=1)].min()
            still = of_winner <= (1.0 + TOLERANCE) * took[:3].min() and earlier.values.has_held(
                tried[:3], np.log(took[:3])
            )
            counts[f"winner {kind}: {'' if still else 'not '}said to be still right after 3 runs"] += 1
            print(f"{name} {old.name} to {new.name}, seed {seed}: the earlier winner loses {loss:.1%}", flush=True)
    print("\n| winner | search | studies |", " | ".join(f"after {count}: median, within 2 %" for count in AFTER), "|")
    print("|---" * (3 + len(AFTER)) + "|")
    for (kind, method), measured in sorted(gaps.items()):
        cells = [f"{np.median(one):.1%}, {(one <= TOLERANCE).mean():.0%}" for one in np.array(measured).T]
        print(f"| {kind} | {method} | {len(measured)} |", " | ".join(cells), "|")
    print("\n".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
