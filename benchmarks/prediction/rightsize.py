"""Compare the cost of the chosen job size with that of the cheapest one that meets a deadline.

    python -m benchmarks.prediction.rightsize --data FOLDER

Recorded runs (a folder of the developer's) are the truth: a probe is one of the recorded runs of a configuration. The
cost is core-hours for pw.x (qe/pwx_*.csv.gz), and core-hours and joules for four programs of molecular dynamics
(machines/md_joules.csv.gz), whose series are divided by a hash of their names: one half chose the method. There each
candidate ran once, so all seeds are alike.

A case is a series of runs and a deadline, 1.1 to 5 times the fastest median time. A configuration is feasible if nine
of ten of its runs meet the deadline; the cheapest of those is what all are compared with. Beside `autotune`, from six
probes that it chooses, with and without the cost model of pw.x: an Amdahl-like fit to six probes that are spread over
the numbers of cores, the most cores, and what one run of every candidate tells, without and with a margin for the noise
of runs.
"""

import argparse
import csv
import gzip
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import nnls

from autotune.performance.regression.table import DesignMatrix
from autotune.performance.rightsizing.candidates import Candidates
from autotune.performance.rightsizing.limits import Limits
from autotune.performance.rightsizing.right_size import Knowledge
from autotune.performance.run_times.model import RunTimes
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import GRID, MATERIALS, WALL, rows_of
from spaces.expressions.quantities import FloatArray

DEADLINES = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0)
PROBES = 6
_LEAST_CONFIGURATIONS, _LEAST_CORE_COUNTS = 8, 5
_CORES = 128  # of a node in md_joules.csv.gz
_WITHIN = 1.05
_KEPT = 0.9
# Nine tenths of a normal distribution lie below this number of standard deviations.
_OF_TEN = 1.2816


@dataclass(frozen=True)
class Series:
    """Recorded runs of one series: the candidates, with what pw.x should take by the manual, and their times.

    With `joules`, (n,), the cost of a run is its energy, otherwise its core-seconds.
    """

    name: str
    candidates: Candidates
    runs: tuple[FloatArray, ...]
    joules: FloatArray | None = None

    def costs(self, times_s: FloatArray, places: object = slice(None)) -> FloatArray:
        """Return the costs of runs, (k,), given their times."""
        return self.candidates.cores[places] * times_s if self.joules is None else self.joules[places]

    @property
    def medians(self) -> FloatArray:
        return np.array([np.median(times) for times in self.runs])

    def kept(self, deadline_s: float) -> FloatArray:
        """Return the share of the runs of each candidate that meet a deadline, (n,)."""
        return np.array([np.mean(times <= deadline_s) for times in self.runs])


def series_of(folder: Path, material: str) -> Iterator[Series]:
    """Yield the series of a material that have enough configurations."""
    groups: dict[tuple[str, ...], dict[tuple[int, ...], list[float]]] = defaultdict(lambda: defaultdict(list))
    facts: dict[tuple[str, ...], Mapping[str, str]] = {}
    for row in rows_of(folder / f"pwx_{material}.csv.gz"):
        if row["path"].startswith("2_"):
            continue
        key = (row["group"], row["nk"], row["ecut"])
        chosen = tuple(int(float(row[name] or 1)) for name in ("nodes", "mpi", "npool", "ndiag"))
        groups[key][chosen].append(float(row["wall_s"]))
        facts[key] = row
    for key, runs in groups.items():
        if len(runs) < _LEAST_CONFIGURATIONS or len({chosen[1] for chosen in runs}) < _LEAST_CORE_COUNTS:
            continue
        yield Series(key[0], _candidates(facts[key], list(runs)), tuple(np.array(times) for times in runs.values()))


def series_of_md(folder: Path, aim: str, half: str) -> Iterator[Series]:
    """Yield the series, on one machine, of each program and size whose name falls into a half: "chose" or "tells"."""
    groups: dict[str, dict[tuple[int, ...], tuple[float, float]]] = defaultdict(dict)
    with gzip.open(folder / "machines" / "md_joules.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            chosen = [row[name] for name in ("nodes", "tasks", "threads")]
            took = (float(row["wall"] or 0.0), float(row["energy"] or 0.0))
            if row["machine"] == "archer" and all(chosen) and min(took) > 0.0:
                groups[f"{row['app']} {row['atoms']}"][tuple(int(float(one)) for one in chosen)] = took
    for name, runs in groups.items():
        if ("chose", "tells")[hashlib.sha256(name.encode()).digest()[0] % 2] != half:
            continue
        # The default, a rank on each core, comes first.
        places = sorted(runs, key=lambda one: (one[2], one[0]))
        nodes = [one[0] for one in places]
        configurations = [dict(zip(("nodes", "tasks", "threads"), one, strict=True)) for one in places]
        joules = np.array([runs[one][1] for one in places]) if aim == "joules" else None
        cores = [_CORES * count for count in nodes]
        candidates = Candidates.of(configurations, nodes, cores, threads=[one[2] for one in places])
        yield Series(name, candidates, tuple(np.array([runs[one][0]]) for one in places), joules)


def _candidates(row: Mapping[str, str], chosen: Sequence[tuple[int, ...]]) -> Candidates:
    configurations = [dict(zip(("np", "npool", "ndiag"), one[1:], strict=True)) for one in chosen]
    work = {"kpoints": int(float(row["nk"])), "bands": int(float(row["nbnd"])), "atoms": int(float(row["nat"]))}
    work |= dict(zip(GRID, (int(size) for size in row["fft"].split(",")), strict=True))
    cores = 96 if "hlrn" in row["group"] else 20
    settings = [
        Setting("qe", "cluster", "here", WALL, {"nodes": one[0], "cores_per_node": cores}, work) for one in chosen
    ]
    model = RunTimes.fit([], (), settings[0])
    rows = [Measured(setting, configuration) for setting, configuration in zip(settings, configurations, strict=True)]
    cases = DesignMatrix.from_measurements(rows)
    expected = model.estimate(cases) if model is not None else None
    found = Candidates.of(configurations, [one[0] for one in chosen], [one[1] for one in chosen], expected)
    return replace(found, off=model.off(cases) if model is not None else None)


Choice = tuple[int, float, bool]
Way = Callable[[Series, float, np.random.Generator], Choice]
"""Returns the place of the candidate that is taken for a deadline, the cost of the probes, and whether it advises to
leave the division into ranks and threads as it is."""


def _ours(series: Series, deadline_s: float, rng: np.random.Generator) -> Choice:
    candidates, limits = series.candidates, Limits(deadline_s, least_energy=series.joules is not None)
    known = Knowledge(candidates, limits)
    spent = 0.0
    for _ in range(PROBES):
        chosen = known.next()
        if chosen is None:
            break
        place = candidates.configurations.index(chosen)
        time_s = float(rng.choice(series.runs[place]))
        cost = float(series.costs(np.array([time_s]), [place])[0])
        spent += cost
        known = replace(known, times_s={**known.times_s, place: [*known.times_s.get(place, ()), time_s]})
        if series.joules is not None:
            known = replace(known, power_w={**known.power_w, place: [cost / (candidates.cores[place] * time_s)]})
    found = known.right_size()
    assert found is not None
    return candidates.configurations.index(found.chosen.configuration), spent, bool(found.division)


def _without_model(series: Series, deadline_s: float, rng: np.random.Generator) -> Choice:
    own = series.candidates
    bare = replace(own, expected=None, off=None)
    return _ours(replace(series, candidates=bare), deadline_s, rng)


def _spread(series: Series, rng: np.random.Generator) -> tuple[list[int], FloatArray]:
    """Return six places, spread over the numbers of cores, with a run of each."""
    order = np.lexsort((rng.random(len(series.runs)), series.candidates.cores))
    places = [int(order[place]) for place in np.linspace(0, len(order) - 1, PROBES).round().astype(int)]
    return places, np.array([rng.choice(series.runs[place]) for place in places])


def _amdahl(series: Series, deadline_s: float, rng: np.random.Generator) -> Choice:
    places, times_s = _spread(series, rng)
    cores = series.candidates.cores
    design = np.column_stack([np.ones(len(cores)), 1.0 / cores, np.log2(cores)])
    weights, _ = nnls(design[places] / times_s[:, None], np.ones(PROBES))
    said = design @ weights
    return _cheapest(said, said * cores, deadline_s), float(series.costs(times_s, places).sum()), False


def _most_cores(series: Series, _: float, rng: np.random.Generator) -> Choice:
    cores = series.candidates.cores
    return int(rng.choice(np.flatnonzero(cores == cores.max()))), 0.0, False


def _all_once(series: Series, deadline_s: float, rng: np.random.Generator) -> Choice:
    """Choose from one run of every candidate, a bound on methods that know less."""
    times_s = np.array([rng.choice(times) for times in series.runs])
    costs = series.costs(times_s)
    return _cheapest(times_s, costs, deadline_s), float(costs.sum()), False


def _all_once_with_margin(series: Series, deadline_s: float, rng: np.random.Generator) -> Choice:
    """Choose in the same way, with a margin for nine of ten runs; the spread of the series is given."""
    spreads = [np.std(np.log(times), ddof=1) for times in series.runs if len(times) > 1]
    spread = np.median(spreads) if spreads else 0.0
    return _all_once(series, deadline_s * float(np.exp(-_OF_TEN * spread)), rng)


def _cheapest(times_s: FloatArray, costs: FloatArray, deadline_s: float) -> int:
    meets = times_s <= deadline_s
    return int(np.where(meets, costs, np.inf).argmin() if meets.any() else times_s.argmin())


WAYS: Mapping[str, Way] = {
    "autotune": _ours,
    "without a model": _without_model,
    "Amdahl-like fit": _amdahl,
    "most cores": _most_cores,
    "all once": _all_once,
    "all, with margin": _all_once_with_margin,
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a case.

    Attributes:
        ratio: The cost over that of the cheapest.
        kept: The share of runs in time.
        spent: The cost of the probes.
        advised: Whether it advises to leave the division into ranks and threads as it is.
        gain: How much faster the fastest candidate of as many nodes and cores is, as a factor.
    """

    ratio: float
    kept: float
    spent: float
    advised: bool
    gain: float


def outcomes(every: Sequence[Series], way: Way, seed: int) -> list[Outcome]:
    """Return the outcomes of a method in all cases that have a feasible configuration."""
    found = []
    for number, series in enumerate(every):
        medians = series.medians
        costs = series.costs(medians)
        for factor in DEADLINES:
            deadline_s = factor * float(medians.min())
            kept = series.kept(deadline_s)
            if not (kept >= _KEPT).any():
                continue
            cheapest = float(costs[kept >= _KEPT].min())
            place, spent, advised = way(series, deadline_s, np.random.default_rng([seed, number]))
            nodes, cores = series.candidates.nodes, series.candidates.cores
            alike = (nodes == nodes[place]) & (cores == cores[place])
            gain = float(medians[place] / medians[alike].min())
            ratio = float(costs[place]) / cheapest
            found.append(Outcome(ratio, float(kept[place]), spent / cheapest, advised, gain))
    return found


def line(name: str, by_seed: Sequence[Sequence[Outcome]]) -> str:
    """Return a line with the outcomes of a method, and their spread over the seeds."""
    within = [100.0 * np.mean([one.ratio <= _WITHIN for one in seed]) for seed in by_seed]
    kept = [100.0 * np.mean([one.kept for one in seed]) for seed in by_seed]
    both = [100.0 * np.mean([one.ratio <= _WITHIN and one.kept >= _KEPT for one in seed]) for seed in by_seed]
    every = [one for seed in by_seed for one in seed]
    ratios = [one.ratio for one in every]
    wrong = [one.gain >= _WITHIN for one in every if one.advised]
    advice = f"  leave ranks x threads: {len(wrong) / len(every):.0%}, {sum(wrong)} wrong" if wrong else ""
    return (
        f"  {name:16s} <= 1.05: {np.mean(within):3.0f}% ({min(within):.0f} to {max(within):.0f})"
        f"  in time: {np.mean(kept):3.0f}% ({min(kept):.0f} to {max(kept):.0f})  both: {np.mean(both):3.0f}%"
        f"  median {median(ratios):.2f}, 90% within {np.quantile(ratios, 0.9):.2f}"
        f"  probes {median(one.spent for one in every):.1f} runs of the cheapest{advice}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with qe/pwx_silicon.csv.gz, qe/pwx_tas2.csv.gz"
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    md = [f"md {aim} {half}" for aim in ("core-hours", "joules") for half in ("chose", "tells")]
    parser.add_argument("--only", nargs="*", default=[*MATERIALS, *md], choices=[*MATERIALS, *md])
    given = parser.parse_args()
    for name in given.only:
        found = series_of_md(given.data, *name.split()[1:]) if name in md else series_of(given.data / "qe", name)
        every = list(found)
        print(f"{name}: {len(every)} series, deadlines of {DEADLINES} times the fastest", flush=True)
        for way in given.ways:
            print(line(way, [outcomes(every, WAYS[way], seed) for seed in range(given.seeds)]), flush=True)


if __name__ == "__main__":
    main()
