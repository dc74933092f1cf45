"""Test the prediction of times at a size that was not measured, with three big-data kernels at three sizes each.

    python -m benchmarks.prediction.bigdata
    python -m benchmarks.prediction.bigdata record [--table FILE] [--seconds 420] [--seed 0]  # nothing else should run

One size is left out at a time: the middle one lies between the known ones, the others beyond them by a factor of two.
Each kernel is predicted by ours (`autotune predict`, with the `[model]` of the study file), by ours without the number
of rows as a fact, and by two log-linear models. "as in the talk" uses the logarithms of size, ranks and threads
("log(P) = architecture + size + workload + threads", with one architecture and one workload at a time), fitted by least
squares; the other uses all parameters, with shrunk weights. Errors are absolute differences of logarithms, in percent:
the median over the configurations of a size, with the quartiles. `in intervals` is the share of times inside our
intervals, which should equal the `promised` share.

`record` uses the studies `bigdata-pca`, `bigdata-kmeans` and `bigdata-svm`, and needs their programs. It runs the
default and random valid configurations with NumPy's own BLAS library, the same ones at each size, in random order, once
and then again while time is left.
"""

import argparse
import csv
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from autotune import studyfile
from autotune.execution.task import run_job
from autotune.machines.this_machine import this_machine
from autotune.performance.predict import Question, Target, question
from autotune.performance.regression.design_matrix import DesignMatrix
from autotune.performance.regression.features import FloatArray
from autotune.performance.regression.linear import LogLinear
from autotune.performance.regression.table import Table
from autotune.performance.run_times.model import RunTimes
from autotune.planning.prepare import Prepared, prepare
from autotune.records.measurement import Measured
from launchers.local import local_launcher
from objectives.base import Context, RunFailure
from spaces import Configuration, Space

TABLE = Path(__file__).parents[1] / "data" / "bigdata_sizes.csv"
ROWS: Mapping[str, tuple[int, int, int]] = {
    "pca": (20_000, 40_000, 80_000),
    "kmeans": (20_000, 40_000, 80_000),
    "svm": (2_000, 4_000, 8_000),
}
_CONFIGURATIONS = 14
_SETTINGS = ("ranks", "threads", "block", "centre", "sums", "points")
_NUMBERS = {"ranks", "threads", "block", "points"}
_BLAS = "numpy"
_LIMIT_S = 60.0

Known = Mapping[int, Sequence[Measured]]
"""Measurements of a kernel by number of rows."""

Predicted = Callable[[Known, int], FloatArray]
"""Predicts the logarithms of the times, (n,), at a number of rows from the measurements at the other ones."""


def study_of(kernel: str, rows: int) -> studyfile.StudyFile:
    """Return the shipped study of a kernel with this number of rows."""
    return studyfile.load(studyfile.find(f"bigdata-{kernel}"), [f"space.derived.rows={rows}"])


def drawn(space: Space, seed: int) -> list[Configuration]:
    """Draw distinct configurations of the space; the first one is the default."""
    own = [one for one in space.sample(np.random.default_rng(seed), 5_000) if one["blas"] == _BLAS]
    unique = {tuple(sorted(one.items())): one for one in (space.default(), *own)}
    return list(unique.values())[:_CONFIGURATIONS]


def record(table: Path, seconds: float, seed: int) -> None:
    """Run all configurations once, then repeat them until `seconds` have passed."""
    machine, launcher, order = this_machine(), local_launcher(), random.Random(seed)
    began_s = time.monotonic()
    with TemporaryDirectory() as name, table.open("w", newline="", encoding="utf-8") as file:
        folder, writer = Path(name), csv.writer(file)
        writer.writerow(("kernel", "rows", "cores", *_SETTINGS, "round", "time_s"))
        ready: dict[tuple[str, int], Prepared] = {
            (kernel, rows): prepare(study_of(kernel, rows), machine, launcher, folder / f"{kernel}-{rows}")
            for kernel, sizes in ROWS.items()
            for rows in sizes
        }
        tried = {kernel: drawn(ready[kernel, sizes[0]].space, seed) for kernel, sizes in ROWS.items()}
        runs = [(kernel, rows, one) for kernel, rows in ready for one in tried[kernel]]
        number = 0
        while number < len(runs) or time.monotonic() - began_s < seconds:
            round_, place = divmod(number, len(runs))
            if place == 0:
                order.shuffle(runs)
            kernel, rows, configuration = runs[place]
            context = Context(folder / f"run-{number}", machine.cpus, _LIMIT_S)
            context.folder.mkdir()
            objective = ready[kernel, rows].plan.objective
            job = objective.job(configuration, context)
            cpus = machine.cpus[: max(1, job.resources.cores)]
            job = replace(job, resources=replace(job.resources, cpus=cpus))
            try:
                took_s: float | str = objective.measure(run_job(job, launcher)).metrics["time_s"]
            except RunFailure as failure:
                took_s = ""
                print(f"{kernel} {rows} {dict(configuration)}: {failure}", flush=True)
            settings = [configuration.get(setting, "") for setting in _SETTINGS]
            writer.writerow((kernel, rows, machine.cores, *settings, round_, took_s))
            file.flush()
            number += 1
    print(f"{number} runs of {len(runs)} in {time.monotonic() - began_s:.0f} s")


def asked_of(kernel: str, rows: int, cores: int) -> Question:
    """Return the question for the run times of a kernel on the machine of the table."""
    facts = {"cores": cores, "nodes": 1, "cores_per_node": cores, "sockets": 1, "threads_per_core": 1}
    with TemporaryDirectory() as folder:
        return question(study_of(kernel, rows), Target("the table's", facts), local_launcher(), Path(folder))


def known_of(kernel: str, lines: Sequence[Mapping[str, str]]) -> tuple[dict[int, Question], dict[int, list[Measured]]]:
    """Return the questions and the measurements of a kernel, by the number of rows: the median of the rounds."""
    own = [line for line in lines if line["kernel"] == kernel and line["time_s"]]
    asked, known = {}, {}
    for rows in ROWS[kernel]:
        asked[rows] = asked_of(kernel, rows, int(own[0]["cores"]))
        times: dict[tuple[str, ...], list[float]] = {}
        for line in own:
            if int(line["rows"]) == rows:
                times.setdefault(tuple(line[name] for name in _SETTINGS), []).append(float(line["time_s"]))
        known[rows] = [
            Measured(asked[rows].setting, _configuration(key), median(found), runs=len(found))
            for key, found in times.items()
        ]
    return asked, known


def _configuration(texts: Sequence[str]) -> Configuration:
    named = {name: text for name, text in zip(_SETTINGS, texts, strict=True) if text}
    return {"blas": _BLAS} | {name: int(text) if name in _NUMBERS else text for name, text in named.items()}


def fitted(asked: Mapping[int, Question], known: Known, out: int) -> RunTimes:
    """Fit the model of run times to all sizes but one.

    Raises:
        ValueError: there are too few measurements.
    """
    others = [row for rows, measured in known.items() if rows != out for row in measured]
    model = RunTimes.fit(others, asked[out].rules, asked[out].setting, asked[out].plan.shape)
    if model is None:
        raise ValueError(out)
    return model


def ours(asked: Mapping[int, Question]) -> Predicted:
    """Return the predictions of `autotune predict`."""
    return lambda known, out: fitted(asked, known, out).estimate(DesignMatrix.from_measurements(known[out])).mean


def without_the_number(asked: Mapping[int, Question]) -> Predicted:
    """Return its predictions without the number of rows as a fact."""

    def predicted(known: Known, out: int) -> FloatArray:
        bare = {rows: replace(one, setting=replace(one.setting, workload_facts={})) for rows, one in asked.items()}
        rows_bare = {
            rows: [replace(row, setting=bare[rows].setting) for row in measured] for rows, measured in known.items()
        }
        return ours(bare)(rows_bare, out)

    return predicted


def as_in_the_talk(known: Known, out: int) -> FloatArray:
    """Fit log(time) = a + b log(rows) + c log(ranks) + d log(threads)."""

    def design(rows: int) -> FloatArray:
        settings = [(row.configuration["ranks"], row.configuration["threads"]) for row in known[rows]]
        numbers = np.array([(1.0, np.log(rows), *np.log([float(number) for number in pair])) for pair in settings])
        return numbers.reshape(len(settings), 4)

    others = [rows for rows in known if rows != out]
    weights, *_ = np.linalg.lstsq(
        np.vstack([design(rows) for rows in others]),
        np.concatenate([_logs(known[rows]) for rows in others]),
        rcond=None,
    )
    logs: FloatArray = design(out) @ weights
    return logs


def with_all_parameters(known: Known, out: int) -> FloatArray:
    """Fit a log-linear model of rows and all parameters, with shrunk weights."""

    def table(rows: Sequence[Measured]) -> Table:
        columns = DesignMatrix.from_measurements(rows).named
        return Table(
            {name: column for name, column in columns.items() if column.dtype != object},
            {name: column for name, column in columns.items() if column.dtype == object},
        )

    others = [row for rows, measured in known.items() if rows != out for row in measured]
    model = LogLinear.fit(table(others), _logs(others), np.ones(len(others)), products=False)
    return model.predict(table(known[out]))


def _logs(rows: Sequence[Measured]) -> FloatArray:
    return np.log([row.value or np.nan for row in rows])


def lines_of(table: Path) -> Iterator[str]:
    """Yield the errors of each model at each size, and over all sizes."""
    with table.open(newline="", encoding="utf-8") as file:
        recorded = list(csv.DictReader(file))
    errors: dict[str, list[FloatArray]] = {}
    held: list[FloatArray] = []
    for kernel, sizes in ROWS.items():
        asked, known = known_of(kernel, recorded)
        models: dict[str, Predicted] = {
            "ours": ours(asked),
            "ours, rows no number": without_the_number(asked),
            "log-linear, as in the talk": as_in_the_talk,
            "log-linear, all parameters": with_all_parameters,
        }
        for out in sizes:
            true = _logs(known[out])
            yield f"{kernel}, {out:,} rows left out ({len(true)} configurations)"
            for name, model in models.items():
                off = np.abs(model(known, out) - true)
                errors.setdefault(name, []).append(off)
                yield f"  {name:28s} {_spread(off)}"
            told = fitted(asked, known, out)
            estimate = told.estimate(DesignMatrix.from_measurements(known[out]))
            held.append(np.abs(estimate.mean - true) <= estimate.half)
            yield f"  in intervals {held[-1].mean():.0%}, promised {told.share:.0%}"
    yield "all"
    for name, found in errors.items():
        yield f"  {name:28s} {_spread(np.concatenate(found))}"
    yield f"  in intervals {np.concatenate(held).mean():.0%}"


def _spread(off: FloatArray) -> str:
    low, middle, high = 100.0 * np.quantile(off, [0.25, 0.5, 0.75])
    return f"{middle:5.1f} % ({low:.1f} to {high:.1f})"


def main() -> None:
    """Record a table, or print the errors of predictions on it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=["record"])
    parser.add_argument("--table", type=Path, default=TABLE)
    parser.add_argument("--seconds", type=float, default=420.0)
    parser.add_argument("--seed", type=int, default=0, help="which configurations are drawn")
    asked = parser.parse_args()
    if asked.what == "record":
        record(asked.table, asked.seconds, asked.seed)
        return
    for line in lines_of(asked.table):
        print(line, flush=True)


if __name__ == "__main__":
    main()
