"""Test how far a verdict holds on other nodes: the real runner replays recorded tuning runs on noisy cloud nodes.

    python benchmarks/verdicts/nodes.py --data FOLDER [--replays 200] [--nodes 3] [--seen 5]

FOLDER has tables of `sample_configs/` of uw-mad-dash/TUNA, one per workload (`*.csv.gz`), with the columns method, run,
order, configuration, worker, performance (0: it failed). Each replay takes one of the recorded runs of the method
`TUNA`. A configuration is one value of one parameter, so a search has nothing to learn from: trials are in random
order, and the comparison is about the choice of the winner and its reported value. A configuration was recorded on some
of the workers, once on each; a verdict over --nodes needs a configuration that was recorded on at least that number.
Without --seen, a study sees all workers and so knows the mean by which it is judged. With --seen N, it sees N random
workers, other ones in each replay, and is judged by the mean over the others. A row has, over all replays of a table:

overstates      by how much the winner's reported value exceeds its mean over the workers (a failure counts as 0);
                `first` is the same for the best configuration by one random sample of each, as a tuner would report
                that runs everything once
against theirs  the winner's mean over the workers, relative to that of the published method's choice; above 0 is
                better. That method takes the configurations on all workers whose values differ by less than 30 % of
                their mean, and chooses the one with the best worst worker
samples         number of runs, relative to those of the published method
"""

import argparse
import csv
import gzip
import io
import sys
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune import studyfile
from autotune.comparison.confirm import confirm
from autotune.display.console import NoDisplay
from autotune.machines.this_machine import this_machine
from autotune.planning.prepare import prepare
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from autotune.tuning.simulated_runs import simulated_runs
from launchers.local import local_launcher

METHOD = "TUNA"
UNSTABLE = 0.3
Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Record:
    """A recorded tuning run: its rows, and the values of each configuration; larger is better if `sign` is 1."""

    name: str
    rows: Sequence[Mapping[str, str]]
    values: Values
    sign: float

    @property
    def default(self) -> str:
        """The configuration of the first row."""
        return self.rows[0]["configuration"]

    def mean(self, configuration: str) -> float:
        """Return the mean over the workers."""
        return fmean(self.values[configuration])

    def among(self, workers: Collection[str]) -> "Record":
        """Return the part that was recorded on some workers, with the default first."""
        rows = [row for row in self.rows if row["worker"] in workers]
        return _record(self.name, sorted(rows, key=lambda row: row["configuration"] != self.default), self.sign)

    def better(self, value: float, other: float) -> float:
        """Return by what share a value is better than another."""
        return value / other - 1.0 if self.sign > 0.0 else other / value - 1.0

    def published(self) -> str:
        """Return the configuration that the published method chooses."""
        most = max(map(len, self.values.values()))
        stable = {
            name: min(self.sign * value for value in values)
            for name, values in self.values.items()
            if len(values) == most and max(values) - min(values) < UNSTABLE * fmean(values)
        }
        return max(stable, key=lambda name: stable[name])

    def first(self, seed: int) -> float:
        """Return by how much one random sample of each configuration overstates the best one's mean."""
        rng = np.random.default_rng(seed)
        sample = {name: float(rng.choice(values)) for name, values in self.values.items()}
        best = max(sample, key=lambda name: self.sign * sample[name])
        return self.better(sample[best], self.mean(best))


@dataclass(frozen=True)
class Replayed:
    """The figures of one replay, as in the table."""

    overstates: float
    first: float
    against: float
    samples: float


def records(folder: Path) -> dict[str, list[Record]]:
    """Read the recorded runs of each table; larger values are better for the databases, which have a throughput."""
    found = {}
    for path in sorted(folder.glob("*.csv.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["method"] == METHOD]
        sign = 1.0 if "tpcc" in path.name or "postgres" in path.name else -1.0
        name = path.name.removesuffix(".csv.gz")
        runs = sorted({int(row["run"]) for row in rows})
        found[name] = [_record(f"{name}-{run}", [row for row in rows if int(row["run"]) == run], sign) for run in runs]
    return found


def _record(name: str, rows: Sequence[Mapping[str, str]], sign: float) -> Record:
    values: dict[str, list[float]] = defaultdict(list)
    for row in rows:
        values[row["configuration"]].append(float(row["performance"]))
    working = {name: found for name, found in values.items() if max(found) > 0.0}
    return Record(name, rows, working, sign)


def halves(record: Record, seed: int, seen: int | None) -> tuple[Record, Record]:
    """Split a record into the part that the study sees and the part that judges it; without `seen` both are whole."""
    if seen is None:
        return record, record
    workers = sorted({row["worker"] for row in record.rows})
    drawn = set(np.random.default_rng(seed).choice(workers, min(seen, len(workers) - 1), replace=False))
    return record.among(drawn), record.among(set(workers) - drawn)


def _table(record: Record) -> str:
    out = io.StringIO()
    writer = csv.writer(out)
    writer.writerow(("configuration", "worker", "performance", "why"))
    for row in record.rows:
        failed = "failed" if float(row["performance"]) <= 0.0 else ""
        writer.writerow((f"c{row['configuration']}", f"w{row['worker']}", row["performance"], failed))
    return out.getvalue()


def replay(record: Record, seed: int, nodes: int, seen: int | None, folder: Path) -> Replayed | None:
    """Replay a recorded run as a study; None without a winner, or if the judging workers did not run the winner."""
    whole, (record, judge) = record, halves(record, seed, seen)
    table = folder / f"{record.name}.csv"
    table.write_text(_table(record), encoding="utf-8")
    options = {
        "table": str(table),
        "metric": "performance",
        "kind": "rate" if record.sign > 0.0 else "other",
        "parameters": ["configuration"],
        "worker": "worker",
        "failure": "why",
        "default": {"configuration": f"c{record.default}"},
    }
    file = {
        "name": record.name,
        "objective": "replay",
        "options": options,
        "sampler": {"name": "random", "seed": seed},
        "budget": {"trials": len({row["configuration"] for row in record.rows})},
        "verdict": {"nodes": nodes},
    }
    study = studyfile.parse(file, source=record.name)
    prepared = prepare(study, this_machine(), local_launcher(), folder)
    store, display = StudyStore.in_memory(prepared.definition), NoDisplay()
    with simulated_runs(prepared.plan, study, display) as manager:
        TuningLoop(Asker(store, sampler_of(prepared.space, study.sampler)), manager, study).tune()
        verdict = confirm(store, manager, study)
    if verdict is None or not verdict.known:
        return None
    winner = str(dict(store.trials()[verdict.winner].configuration)["configuration"]).removeprefix("c")
    if winner not in judge.values:
        return None
    true = judge.mean(winner)
    return Replayed(
        record.better(verdict.value(), true),
        whole.first(seed),
        judge.better(true, judge.mean(whole.published())),
        len(store.runs()) / len(whole.rows),
    )


def main() -> None:
    """Replay and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, metavar="FOLDER", help="folder of the recorded tables")
    parser.add_argument("--replays", type=int, default=200, help="number of replays in all (200)")
    parser.add_argument("--nodes", type=int, default=3, help="least number of nodes of a verdict (3)")
    parser.add_argument("--seen", type=int, help="number of workers that a study sees (all); the others judge")
    options = parser.parse_args()
    tables = records(options.data)
    if not tables:
        parser.error(f"{options.data} has no *.csv.gz")
    each = max(1, options.replays // len(tables))
    print(f"{'table':28} {'replays':>7} {'overstates':>11} {'first':>7} {'against theirs':>15} {'samples':>8}")
    everything: list[Replayed] = []
    for name, runs in tables.items():
        with TemporaryDirectory() as folder:
            of = [
                replay(runs[seed % len(runs)], seed, options.nodes, options.seen, Path(folder)) for seed in range(each)
            ]
        known = [one for one in of if one is not None]
        everything += known
        print(row(name, known, each), flush=True)
    print(row("all", everything, each * len(tables)))


def row(name: str, known: Sequence[Replayed], replays: int) -> str:
    """Return a line of the table: means, and the number of replays without a verdict if there are any."""
    if not known:
        return f"{name:28} {replays:7} no verdict"
    without = f"  ({replays - len(known)} without a verdict)" if len(known) < replays else ""
    numbers = [fmean(values) for values in zip(*map(astuple, known), strict=True)]
    overstates, first, against, samples = numbers
    worst = median(one.against for one in known)
    return (
        f"{name:28} {replays:7} {overstates:11.1%} {first:7.1%} {against:8.1%} ({worst:+.1%}) {samples:8.0%}{without}"
    )


if __name__ == "__main__":
    main()
