"""How well run times are predicted where nothing, or little, has run: `python -m benchmarks.run_times --data FOLDER`.

Runs of pw.x (a folder of the developer's, qe/pwx_silicon.csv.gz) are held out by number of nodes, by build and by
cut-off, with 0, 10 and 20 of them known after all; a table of Summit (ships with autotune) by random halves. Beside the
model: the seeds' log-linear model, a random forest and XGBoost, on parameters and facts without anything computed.
"""

import argparse
import csv
import gzip
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

from autotune.performance.measurements.shipped import shipped
from autotune.performance.regression.boosting import ROUNDS, Trees
from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.linear import LogLinear
from autotune.performance.regression.table import Table
from autotune.performance.run_times.model import RunTimes
from autotune.performance.run_times.novelty import inside, installation, novelty
from autotune.records.measurement import Measured, Setting
from objectives.base import Metric
from spaces.parameters.parameter import Value

WALL = Metric("wall_s", "s", "minimize", "time")
_CORES = {"hlrn": 96, "cluster": 20}
_BUILDS = {
    "si_bench_la_parallel_intel": ("intel", "intel", "mkl"),
    "si_bench_nk_intel_compiler_const_poolsize_hlrn": ("intel", "intel", "mkl"),
    "si_bench_nk_intel_compiler_const_poolsize": ("intel", "intel", "mkl"),
    "si_bench_nprocs_intel_compiler": ("intel", "intel", "mkl"),
    "si_bench_nk_ompi_const_poolsize": ("gcc", "openmpi", "unstated"),
    "si_bench_nprocs": ("gcc", "openmpi", "unstated"),
    "si_bench_nprocs_openblas": ("gcc", "openmpi", "openblas"),
    "si_bench_nprocs_scalapack": ("gcc", "openmpi", "scalapack"),
}
_UNSTATED = ("unstated",) * 3
_WITHIN = 0.05
_LEAST_LEFT = 5


def pwx_runs(path: Path) -> list[Measured]:
    """Return the runs of pw.x and ph.x on silicon: medians of what ran alike, copies of a file once."""
    runs: dict[_Run, list[float]] = defaultdict(list)
    seen = set()
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            copy = (row["path"].rsplit("/", 1)[1], row["wall_s"], row["cpu_s"])
            if copy in seen:
                continue
            seen.add(copy)
            kind = "ph" if row["path"].startswith("2_") else "scf"
            machine = "hlrn" if "hlrn" in row["group"] else "cluster"
            build = _BUILDS.get(row["group"], _UNSTATED)
            nodes, ranks, pools, diag, kpoints = (int(float(row[name])) for name in _COUNTS)
            grid = tuple(int(size) for size in row["fft"].split(","))
            cutoff = float(row["ecut"])
            key = _Run(kind, machine, build, nodes, kpoints, cutoff, grid, (ranks, pools, diag))
            runs[key].append(float(row["wall_s"]))
    return [key.measured(times) for key, times in runs.items()]


_COUNTS = ("nodes", "mpi", "npool", "ndiag", "nk")


@dataclass(frozen=True)
class _Run:
    kind: str
    machine: str
    build: tuple[str, str, str]
    nodes: int
    kpoints: int
    cutoff_ry: float
    grid: tuple[int, ...]
    chosen: tuple[int, int, int]

    def measured(self, times: list[float]) -> Measured:
        facts: dict[str, Value] = {"machine": self.machine, "nodes": self.nodes}
        facts |= {"cores_per_node": _CORES[self.machine]}
        facts |= dict(zip(("compiler", "mpi", "blas"), self.build, strict=True))
        work: dict[str, Value] = {"calculation": self.kind, "kpoints": self.kpoints, "cutoff_ry": self.cutoff_ry}
        work |= dict(zip(("fft_dense_x", "fft_dense_y", "fft_dense_z"), self.grid, strict=True))
        setting = Setting("qe", self.machine, f"{self.kind} {self.kpoints} {self.cutoff_ry}", WALL, facts, work)
        configuration = dict(zip(("np", "npool", "ndiag"), self.chosen, strict=True))
        return Measured(setting, configuration, median(times), runs=len(times))


By = Callable[[Setting], object]
BY: Mapping[str, tuple[By, tuple[str, ...]]] = {
    "nodes": (lambda one: one.machine_facts["nodes"], ("5",)),
    "installation": (lambda one: (one.machine, installation(one)), ("'compiler', 'unstated'",)),
    "workload": (lambda one: one.workload_facts["cutoff_ry"], ("70",)),
}
TITLES = {"nodes": "nodes", "installation": "build", "workload": "cut-off"}


@dataclass(frozen=True)
class Said:
    """What a model said of rows: logarithms, (n,), and half widths, (n,)."""

    rows: list[Measured]
    mean: FloatArray
    half: FloatArray

    @property
    def y(self) -> FloatArray:
        return _logs(self.rows)

    @property
    def percent(self) -> FloatArray:
        found: FloatArray = 100.0 * np.abs(np.exp(self.mean - self.y) - 1.0)
        return found

    def losses(self) -> list[float]:
        """Return, for each setting with several choices, what the one chosen costs above the best that was measured."""
        places = defaultdict(list)
        for place, row in enumerate(self.rows):
            places[row.setting.key, installation(row.setting), row.configuration["np"]].append(place)
        y = self.y
        return [
            float(np.exp(y[min(alike, key=lambda place: self.mean[place])] - y[alike].min()) - 1.0)
            for alike in places.values()
            if len(alike) > 1
        ]

    def line(self, name: str) -> str:
        cover = np.mean(np.abs(self.mean - self.y) <= self.half)
        losses = np.array(self.losses())
        texts = [f"{name:26s} n={len(self.rows):4d}  MdAPE {np.median(self.percent):5.1f}%"]
        texts.append(f"rho {spearmanr(self.mean, self.y)[0]:.3f}")
        if self.half.any():
            texts.append(f"cover {100 * cover:5.1f}%  half x{np.exp(np.median(self.half)):.2f}")
        if len(losses):
            within = 100 * np.mean(losses <= _WITHIN)
            texts.append(f"choice within 5 %: {within:.0f}% of {len(losses)}, mean loss {100 * losses.mean():.1f}%")
        return "  ".join(texts)


Model = Callable[[list[Measured], list[Measured], Setting], tuple[FloatArray, FloatArray]]


def _ours(train: list[Measured], asked: list[Measured], setting: Setting) -> tuple[FloatArray, FloatArray]:
    model = RunTimes.fitted(train, (), setting)
    assert model is not None
    found = model.estimate(DesignMatrix.measured(asked))
    return found.mean, found.half


def _plain(rows: list[Measured]) -> Table:
    columns = {
        **DesignMatrix.measured(rows).named,
        "machine": np.array([row.setting.machine for row in rows], dtype=object),
    }
    return Table(
        {name: column for name, column in columns.items() if column.dtype != object},
        {name: column for name, column in columns.items() if column.dtype == object},
    )


def _seeds(train: list[Measured], asked: list[Measured], _: Setting) -> tuple[FloatArray, FloatArray]:
    model = LogLinear.fitted(_plain(train), _logs(train), np.ones(len(train)), products=False)
    return model.predict(_plain(asked)), np.zeros(len(asked))


def _forest(train: list[Measured], asked: list[Measured], _: Setting) -> tuple[FloatArray, FloatArray]:
    features = Features.learnt(_plain(train).columns)
    x, z = (np.nan_to_num(features.raw(_plain(rows).columns), nan=-1.0) for rows in (train, asked))
    model = RandomForestRegressor(300, random_state=0, n_jobs=1).fit(x, _logs(train))
    return model.predict(z), np.zeros(len(asked))


def _boosted(train: list[Measured], asked: list[Measured], _: Setting) -> tuple[FloatArray, FloatArray]:
    y = _logs(train)
    trees = Trees.fitted(_plain(train).columns, y - y.mean())
    return y.mean() + trees.predict(_plain(asked).columns, ROUNDS[-1]), np.zeros(len(asked))


MODELS: Mapping[str, Model] = {
    "autotune": _ours,
    "seeds' log-linear": _seeds,
    "random forest": _forest,
    "XGBoost": _boosted,
}


def held_out(rows: list[Measured], respect: str, few: int, model: Model, seed: int = 0) -> Said | None:
    """Return what a model says of each value of what is held out, `few` rows of it being known after all."""
    by, skipped = BY[respect]
    found = []
    for label in dict.fromkeys(by(row.setting) for row in rows):
        if any(word in str(label) for word in skipped):
            continue
        held = [row for row in rows if by(row.setting) == label]
        train = [row for row in rows if by(row.setting) != label]
        if few and len(held) < few + _LEAST_LEFT:
            continue
        order = np.random.default_rng(seed).permutation(len(held)) if few else np.arange(len(held))
        train += [held[place] for place in order[:few]]
        asked = _answered(train, [held[place] for place in sorted(order[few:])])
        if asked:
            mean, half = model(train, asked, _asked_setting(train, asked, respect))
            found.append(Said(asked, mean, half))
    if not found:
        return None
    return Said(
        [row for one in found for row in one.rows],
        np.concatenate([one.mean for one in found]),
        np.concatenate([one.half for one in found]),
    )


def _answered(train: list[Measured], held: list[Measured]) -> list[Measured]:
    """Return what would be answered without doubts: no number far outside, no kind of calculation never seen."""
    known, asked = _sizes(train), _sizes(held)
    kinds = {row.setting.workload_facts["calculation"] for row in train}
    there = inside(known, asked)
    return [
        row
        for row, is_inside in zip(held, there, strict=True)
        if is_inside and row.setting.workload_facts["calculation"] in kinds
    ]


def _sizes(rows: list[Measured]) -> list[FloatArray]:
    named = DesignMatrix.measured(rows).named
    names = ("nodes", "np", "npool", "ndiag", "kpoints", "cutoff_ry")
    return [*(named[name] for name in names), named["np"] / named["npool"]]


def _asked_setting(train: list[Measured], asked: list[Measured], respect: str) -> Setting:
    """Return the commonest setting that is new in this respect only: one model answers for all that is held out."""
    settings = [row.setting for row in train]
    counts = Counter(row.setting.key for row in asked)
    candidates = {row.setting.key: row.setting for row in asked}
    ordered = sorted(candidates.values(), key=lambda one: (-counts[one.key], one.key))
    return next((one for one in ordered if novelty(settings, one).respect == respect), ordered[0])


def summit(repeats: int) -> str:
    """Return the errors on half of Summit's measurements, fitted to Summit-Dev and the other half."""
    rows = [row for row in shipped() if row.setting.program == "data-science" and row.value is not None]
    old = [row for row in rows if row.setting.machine == "summit-dev"]
    new = [row for row in rows if row.setting.machine == "summit"]
    ours, seeds = [], []
    for repeat in range(repeats):
        order = np.random.default_rng(repeat).permutation(len(new))
        train = old + [new[place] for place in order[: len(new) // 2]]
        asked = [new[place] for place in order[len(new) // 2 :]]
        for setting in {row.setting.key: row.setting for row in asked}.values():
            own = [row for row in asked if row.setting.key == setting.key]
            ours.append(Said(own, *_ours(train, own, setting)))
        seeds.append(Said(asked, *_seeds(train, asked, asked[0].setting)))
    return "\n".join(_summit_line(name, said) for name, said in (("autotune", ours), ("seeds' log-linear", seeds)))


def _summit_line(name: str, said: Sequence[Said]) -> str:
    percent = np.concatenate([one.percent for one in said])
    off, half = (np.concatenate(parts) for parts in zip(*((np.abs(s.mean - s.y), s.half) for s in said), strict=True))
    text = f"{name:26s} MdAPE {np.median(percent):5.1f}%  mean {percent.mean():5.1f}%  greatest {percent.max():.0f}%"
    return text + (f"  cover {100 * np.mean(off <= half):.1f}%  half x{np.exp(np.median(half)):.2f}" * bool(half.any()))


def speed(rows: list[Measured]) -> str:
    """Return how long 10,000 measurements and 100,000 predictions take."""
    rng = np.random.default_rng(0)
    many = [rows[place] for place in rng.integers(0, len(rows), 10_000)]
    many = [replace(row, value=(row.value or 1.0) * float(np.exp(0.05 * rng.standard_normal()))) for row in many]
    setting = rows[0].setting
    cases = DesignMatrix.measured(
        [replace(rows[place], setting=setting) for place in rng.integers(0, len(rows), 100_000)]
    )
    start, start_cpu = time.perf_counter(), time.process_time()
    model = RunTimes.fitted(many, (), setting)
    fitted, fitted_cpu = time.perf_counter(), time.process_time()
    assert model is not None
    model.estimate(cases)
    wall, cpu = time.perf_counter() - fitted, time.process_time() - fitted_cpu
    return (
        f"fit of 10,000: {fitted - start:.1f} s ({fitted_cpu - start_cpu:.1f} s of a processor), "
        f"prediction of 100,000: {wall:.1f} s ({cpu:.1f} s)"
    )


def _logs(rows: list[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with qe/pwx_silicon.csv.gz")
    parser.add_argument("--only", choices=(*TITLES, "summit", "speed"), help="one part only")
    parser.add_argument("--few", type=int, choices=(0, 10, 20), help="so many held-out runs known only")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    given = parser.parse_args()
    if given.only in {None, "summit"}:
        print("Summit, from Summit-Dev and random halves:\n" + summit(20), flush=True)
    path = given.data / "qe" / "pwx_silicon.csv.gz" if given.data else None
    if path is None or not path.exists():
        print(f"skipped: the runs of pw.x are not there ({path or 'no --data'})")
        return
    rows = pwx_runs(path)
    for respect, title in TITLES.items():
        for few in (0, 10, 20) if given.few is None else (given.few,):
            if given.only not in {None, respect}:
                continue
            print(f"pw.x held out by {title}, {few} of them known:", flush=True)
            for name in given.models:
                start = time.perf_counter()
                said = held_out(rows, respect, few, MODELS[name])
                line = said.line(name) if said is not None else f"{name:26s} nothing to ask"
                print(f"  {line}  [{time.perf_counter() - start:.0f} s]", flush=True)
    if given.only in {None, "speed"}:
        print(speed(rows))


if __name__ == "__main__":
    main()
