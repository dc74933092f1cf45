"""Test the prediction of run times beyond the measured range, for programs other than pw.x.

    python -m benchmarks.prediction.shapes [--data FOLDER]

With and without costs (docs/prediction.md), beside Amdahl's law with a communication term, a log-linear model, a random
forest and XGBoost. The data: a published table of Summit, the recorded runs of UCX that ship, and, with a folder of the
developer's, runs of pw.x as those of any command with ranks.
"""

import argparse
import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from scipy.optimize import nnls
from scipy.stats import spearmanr
from sklearn.ensemble import RandomForestRegressor

from autotune.performance.measurements.shipped import load_shipped_measurements
from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import Features, FloatArray
from autotune.performance.regression.linear import LogLinear
from autotune.performance.regression.table import Table
from autotune.performance.regression.trees import ROUNDS, Trees
from autotune.performance.run_times.model import RunTimes
from autotune.records.measurement import Measured, Setting
from benchmarks.prediction.pwx_runs import MATERIALS, pwx_runs
from objectives.base import Metric
from objectives.shapes.scaling import strong_scaling
from objectives.shapes.shape import Shape, Term
from spaces.parameters.parameter import Value

_LEAST = 4
_UCX = Path(__file__).parents[2] / "studies" / "tables" / "ucx-tcp.csv"
_THROUGHPUT = Metric("throughput_bytes_per_s", "B/s", "maximize", "rate")


Split = tuple[list[Measured], list[Measured]]
"""The known runs, and the runs to predict."""


@dataclass(frozen=True)
class Problem:
    """Runs of a program, the shape that its user would write, if any, and what is predicted from what."""

    name: str
    rows: Sequence[Measured]
    shape: Shape | None
    cores: tuple[str, ...]
    splits: tuple[Split, ...]


Model = Callable[[Problem, list[Measured], list[Measured]], FloatArray | None]
"""Predicts logarithms of values from known runs; returns None if it cannot."""


def _of(shape: Callable[[Problem], Shape | None]) -> Model:
    def predicted(problem: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
        logs = np.full(len(asked), np.nan)
        for key in {row.setting.key for row in asked}:
            places = [place for place, row in enumerate(asked) if row.setting.key == key]
            model = RunTimes.fit(known, (), asked[places[0]].setting, shape(problem))
            if model is None:
                return None
            logs[places] = model.estimate(DesignMatrix.from_measurements([asked[place] for place in places])).mean
        return logs

    return predicted


def _amdahl(problem: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
    """t = a / cores + b + c log2(cores), of the asked workload's own runs if there are three, else of all."""
    if not problem.cores or not known:
        return None
    workloads = {row.setting.workload for row in asked}
    own = [row for row in known if row.setting.workload in workloads]
    known = own if len(own) >= _LEAST - 1 else known

    def design(rows: list[Measured]) -> FloatArray:
        named = DesignMatrix.from_measurements(rows).named
        cores = np.prod([np.nan_to_num(named[name], nan=1.0) for name in problem.cores], axis=0, initial=1.0)
        cores = np.broadcast_to(cores, (len(rows),))
        return np.column_stack([1.0 / cores, np.ones(len(rows)), np.log2(cores)])

    times = np.exp(_logs(known))
    rates, _ = nnls(design(known) / times[:, None], np.ones(len(known)))
    logs: FloatArray = np.log(np.maximum(design(asked) @ rates, 1e-9))
    return logs


def _log_linear(_: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
    if not known:
        return None
    return LogLinear.fit(_plain(known), _logs(known), np.ones(len(known)), products=False).predict(_plain(asked))


def _forest(_: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
    features = Features.learn(_plain(known).columns)
    if not features.names:
        return None
    x, z = (np.nan_to_num(features.raw(_plain(rows).columns), nan=-1.0) for rows in (known, asked))
    logs: FloatArray = RandomForestRegressor(200, random_state=0, n_jobs=1).fit(x, _logs(known)).predict(z)
    return logs


def _boosted(_: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
    if not known:
        return None
    y = _logs(known)
    return y.mean() + Trees.fit(_plain(known).columns, y - y.mean()).predict(_plain(asked).columns, ROUNDS[-1])


def _without(problem: Problem, known: list[Measured], asked: list[Measured]) -> FloatArray | None:
    """Predict by the model without the costs of the program."""
    unknown, wanted = (
        [replace(row, setting=replace(row.setting, program="unknown")) for row in rows] for rows in (known, asked)
    )
    return _of(lambda _: None)(problem, unknown, wanted)


MODELS: Mapping[str, Model] = {
    "with costs": _of(lambda problem: problem.shape),
    "without costs": _without,
    "Amdahl": _amdahl,
    "log-linear": _log_linear,
    "random forest": _forest,
    "XGBoost": _boosted,
}


def _plain(rows: list[Measured]) -> Table:
    columns = DesignMatrix.from_measurements(rows).named
    return Table(
        {name: column for name, column in columns.items() if column.dtype != object},
        {name: column for name, column in columns.items() if column.dtype == object},
    )


def _logs(rows: Sequence[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def _line(problem: Problem, model: Model) -> str:
    """Return the median error, the rank correlation and what the first choice loses, in the mean of the splits."""
    errors, correlations, losses = [], [], []
    together: dict[int, float] = {}
    for known, asked in problem.splits:
        logs = model(problem, known, asked)
        if logs is None:
            return "no prediction"
        errors.append(np.abs(np.expm1(logs - _logs(asked))))
        if len(problem.splits[0][0]) + len(problem.splits[0][1]) == len(problem.rows) and len(asked) < len(known):
            together |= {id(row): float(log) for row, log in zip(asked, logs, strict=True)}
        else:
            correlations.append(_correlation(logs, _logs(asked)))
            losses.append(_loss(logs, asked))
    for key in {(row.setting.machine, row.setting.workload) for row in problem.rows}:
        own = [
            row for row in problem.rows if (row.setting.machine, row.setting.workload) == key and id(row) in together
        ]
        if len(own) >= _LEAST:
            logs = np.array([together[id(row)] for row in own])
            correlations.append(_correlation(logs, _logs(own)))
            losses.append(_loss(logs, own))
    text = f"median error {100 * float(np.median(np.concatenate(errors))):4.0f} %"
    return f"{text}  rank correlation {np.mean(correlations):5.2f}  loss of its choice {100 * np.mean(losses):4.0f} %"


def _correlation(logs: FloatArray, true: FloatArray) -> float:
    return float(spearmanr(logs, true).statistic) if np.ptp(logs) else 0.0


def _loss(logs: FloatArray, rows: Sequence[Measured]) -> float:
    cost = rows[0].setting.metric.cost
    true = np.array([cost(log) for log in _logs(rows).tolist()])
    return float(np.exp(true[int(np.argmin([cost(log) for log in logs.tolist()]))] - true.min()) - 1.0)


def _of_summit() -> Problem:
    rows = [
        row for row in load_shipped_measurements() if row.setting.program == "data-science" and row.value is not None
    ]
    texts = ("input_gb", "input_gb / smt", "1", "smt")
    terms = (Term(text, text, share, 2.0) for text, share in zip(texts, (0.3, 0.3, 1.0, 0.1), strict=True))
    name = "Summit's table, [model] terms: a number of hardware threads left out"
    return Problem(name, rows, Shape(tuple(terms)), ("smt",), _one_out(rows, lambda row: row.configuration["smt"]))


def _of_pwx(folder: Path) -> Iterator[Problem]:
    """Yield the runs of each build of pw.x, the best of its pools for each number of ranks, as those of any command."""
    for material in MATERIALS:
        best: dict[tuple[object, ...], Measured] = {}
        for row in pwx_runs(folder, material):
            key = (*_build(row), row.configuration["np"])
            if key not in best or (row.value or np.inf) < (best[key].value or np.inf):
                ranks = {"np": row.configuration["np"]}
                best[key] = replace(row, setting=replace(row.setting, program="any"), configuration=ranks, parts={})
        groups = dict.fromkeys(_build(row) for row in best.values())
        for group in groups:
            rows = [row for row in best.values() if _build(row) == group]
            if len({row.setting.nodes for row in rows}) < _LEAST:
                continue
            name, shape = f"{material}, {' '.join(group[1:])} ({len(rows)} runs)", strong_scaling("np", None)
            yield Problem(
                f"{name}: a number of nodes left out",
                rows,
                shape,
                ("np",),
                _one_out(rows, lambda row: row.setting.nodes),
            )
            for most in (4, 20, 40):
                few = [row for row in rows if int(row.configuration["np"]) <= most]
                many = [row for row in rows if int(row.configuration["np"]) > most]
                if len(few) >= _LEAST and len(many) >= _LEAST:
                    yield Problem(f"{name}: up to {most} ranks known", rows, shape, ("np",), ((few, many),))


def _of_ucx() -> Iterator[Problem]:
    """Yield the recorded runs of UCX with a few of them known: ten draws of each number of known runs."""
    rows = _ucx_runs()
    for few in (0, 5, 10):
        splits = []
        for seed in range(10 if few else 1):
            order = np.random.default_rng(seed).permutation(len(rows))
            splits.append(([rows[place] for place in order[:few]], [rows[place] for place in order[few:]]))
        yield Problem(f"UCX over TCP: {few} of {len(rows)} configurations known", rows, None, (), tuple(splits))


def _ucx_runs() -> list[Measured]:
    facts: dict[str, Value] = {"benchmark": "merge", "workers": 2, "rows": 50_000}
    setting = Setting("ucx", "here", "merge", _THROUGHPUT, {"cores": 2, "nodes": 1, "cores_per_node": 2}, facts)
    runs: dict[tuple[tuple[str, str], ...], list[float]] = {}
    with _UCX.open(encoding="utf-8") as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            key = tuple((name, text) for name, text in row.items() if name.startswith("UCX") and text)
            if row[_THROUGHPUT.name]:
                runs.setdefault(key, []).append(float(row[_THROUGHPUT.name]))
    return [Measured(setting, dict(key), median(values), runs=len(values)) for key, values in runs.items()]


def _one_out(rows: list[Measured], by: Callable[[Measured], object]) -> tuple[Split, ...]:
    labels = dict.fromkeys(by(row) for row in rows)
    return tuple(
        ([row for row in rows if by(row) != label], [row for row in rows if by(row) == label]) for label in labels
    )


def _build(row: Measured) -> tuple[str, ...]:
    facts = row.setting.machine_facts
    return (row.setting.workload, row.setting.machine, *(str(facts[name]) for name in ("compiler", "mpi", "blas")))


def main() -> None:
    """Print the errors of all models on all problems."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder with qe/pwx_silicon.csv.gz and qe/pwx_tas2.csv.gz")
    given = parser.parse_args()
    problems = [_of_summit(), *_of_ucx(), *(_of_pwx(given.data / "qe") if given.data else ())]
    for problem in problems:
        print(problem.name)
        for name, model in MODELS.items():
            print(f"  {name:16s} {_line(problem, model)}", flush=True)


if __name__ == "__main__":
    main()
