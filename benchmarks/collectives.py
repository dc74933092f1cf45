"""How long every collective operation takes with every algorithm of the installed MPI library: a table, and its oracle.

    python -m benchmarks.collectives --table all.csv --ranks 2,4 --piece-s 50     # go on with the table
    python -m benchmarks.collectives --table all.csv --summary                    # what the best of it gains

A piece ends after so many seconds, and the next one goes on: between two of them others may have the cores. The default
runs once more with each five others, so that the table shows how the machine drifts. The oracle takes the fastest
algorithm of each size; its gain is the geometric mean over the sizes, and too good by what noise the fastest had. So
the last line leaves one repeat out in turn: the others choose, and it says what that gains. No table is worth more.
"""

import argparse
import csv
import math
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from autotune.execution.task import run_job
from launchers.local import local_launcher
from objectives.base import POINTS, Context, Plan, RunFailure
from objectives.mpi.knobs import COLLECTIVE, RANKS
from objectives.mpi.options import COLLECTIVES
from objectives.mpi.plan import plan
from spaces import Choice, Configuration, Integer, Parameter

COLUMNS = ("collective", "ranks", "algorithm", "bytes", "latency_s")
_LIBRARY = "default"
_LIMIT_S = 60.0
_BETWEEN_DEFAULTS = 5


def wanted(parameters: Sequence[Parameter], repeats: int) -> Iterator[tuple[str, Configuration]]:
    """Return what runs, in order: names of algorithms, and configurations."""
    algorithms = {p.when: p for p in parameters if isinstance(p, Choice) and p.name != COLLECTIVE}
    (ranks,) = (p for p in parameters if isinstance(p, Integer) and p.name == RANKS)
    for _ in range(repeats):
        for number in ranks.values:
            for collective in COLLECTIVES:
                base = {COLLECTIVE: collective, RANKS: number}
                own = algorithms[f"{COLLECTIVE} == '{collective}'"]
                for place, name in enumerate(own.values):
                    if place % _BETWEEN_DEFAULTS == 0:
                        yield _LIBRARY, base
                    if name != "two_proc" or number == 2:
                        yield str(name), base | {own.name: name}


def record(made: Plan, table: Path, repeats: int, piece_s: float) -> bool:
    """Go on with the table; return whether it is whole."""
    ends_at = time.monotonic() + piece_s
    done = table.with_suffix(".done")
    before = len(done.read_text().splitlines()) if done.exists() else 0
    launcher = local_launcher()
    for number, (name, configuration) in enumerate(wanted(made.parameters, repeats)):
        if number < before:
            continue
        if time.monotonic() > ends_at:
            return False
        with tempfile.TemporaryDirectory() as folder:
            job = made.objective.job(configuration, Context(Path(folder), time_limit_s=_LIMIT_S))
            try:
                points = made.objective.measure(run_job(job, launcher)).details[POINTS]
            except RunFailure as failure:
                print(f"{configuration}: {failure}", flush=True)
                points = []
        rows = [(configuration[COLLECTIVE], configuration[RANKS], name, size, value) for size, value in points]
        is_new = not table.exists()
        with table.open("a", newline="") as file:
            csv.writer(file).writerows([COLUMNS, *rows] if is_new else rows)
        with done.open("a") as file:
            file.write(f"{name}\n")
    return True


def summary(table: Path) -> Iterator[str]:
    """Return a line for each collective and number of ranks: what the fastest algorithm of each size gains."""
    measured: dict[tuple[str, int], dict[int, dict[str, list[float]]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(list))
    )
    with table.open(newline="") as file:
        for row in csv.DictReader(file):
            by_algorithm = measured[row["collective"], int(row["ranks"])][int(row["bytes"])]
            by_algorithm[row["algorithm"]].append(float(row["latency_s"]))
    all_gains, fresh = [], []
    for (collective, ranks), by_size in sorted(measured.items()):
        gains, best = [], []
        for size, by_algorithm in sorted(by_size.items()):
            if _LIBRARY in by_algorithm:
                medians = {name: statistics.median(values) for name, values in by_algorithm.items()}
                fastest = min(medians, key=lambda name: medians[name])
                gains.append(math.log(medians[_LIBRARY] / medians[fastest]))
                best.append(f"{size}: {fastest}")
                fresh += fresh_gains(by_algorithm)
        all_gains += gains
        if gains:
            yield f"{collective}, {ranks} ranks: {_mean(gains)} ({'; '.join(best)})"
    if fresh:
        yield f"all: {_mean(all_gains)}, in repeats that did not choose {_mean(fresh)}"


def fresh_gains(by_algorithm: Mapping[str, Sequence[float]]) -> list[float]:
    """Return the logarithms of what the fastest of all other repeats gains in each repeat, over the default there."""
    repeats = min(map(len, by_algorithm.values()))
    gains = []
    for one in range(repeats if repeats > 1 else 0):
        others, there = {}, {}
        for name, values in by_algorithm.items():
            # The default ran more often: it has as many groups.
            others[name] = statistics.median(value for place, value in enumerate(values) if place % repeats != one)
            there[name] = statistics.median(values[one::repeats])
        gains.append(math.log(there[_LIBRARY] / there[min(others, key=lambda name: others[name])]))
    return gains


def _mean(gains: Sequence[float]) -> str:
    return f"{math.exp(statistics.fmean(gains)):.3f}x"


def main() -> None:
    """Go on with a table, or say what it shows."""
    parser = argparse.ArgumentParser(description="every algorithm of MPI's collective operations")
    parser.add_argument("--table", type=Path, required=True)
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--bytes", default="", help="sizes of messages: 8,4096,262144")
    parser.add_argument("--seconds", type=float, default=1.0, help="how long a run measures")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--piece-s", type=float, default=50.0)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    if not given.summary:
        launcher = local_launcher()
        options = {"ranks": [int(word) for word in given.ranks.split(",")], "seconds": given.seconds}
        if given.bytes:
            options["message_bytes"] = [int(word) for word in given.bytes.split(",")]
        with tempfile.TemporaryDirectory() as folder:
            made = plan(
                options,
                machine={"cores": given.cores},
                run_job=lambda job: run_job(job, launcher),
                folder=Path(folder),
            )
        print("whole" if record(made, given.table, given.repeats, given.piece_s) else "more is to be measured")
    print("\n".join(summary(given.table)))


if __name__ == "__main__":
    main()
