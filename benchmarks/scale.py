"""What the coordinator costs with 1,000 runs in flight and up to 10,000 trials, and how busy it keeps them.

    python benchmarks/scale.py [--trials 10000] [--slots 1000] [--job-s 30] [--sampler autotune] [--poll-s 0]
                               [--once] [--memory] [--json] [--profile FILE]

Jobs are simulated: one takes about `--job-s`, whatever is measured of it, on a clock that stands still while the
coordinator waits, jumps to the next end, and runs on by the CPU time that the coordinator takes. So a coordinator that
is too slow leaves slots empty, as it would on a cluster. Storage is SQLite on disk; the folders of runs are real. With
`--once` every configuration runs once; else runs are repeated, capped and compared as in any study. A launcher tells of
ends at once; a batch system is asked every `--poll-s`. The figures so far are written to stderr.
"""

import argparse
import cProfile
import heapq
import json
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import optuna

from autotune.bench import Bench
from autotune.cores import CorePool
from autotune.outcome import Outcome
from autotune.runner import StudyRunner
from autotune.search.samplers import sampler_of
from autotune.search.store import StudyStore
from autotune.studyfile import RepeatsSection, SamplerSection
from autotune.trial import Task
from benchmarks.coordinator import SPACE as SMALL
from launchers import Job, Usage
from objectives.base import Context
from spaces import Choice, Configuration, Constraint, Integer, Space
from tests.autotune.fakes import ONCE, ListDisplay, PaperObjective, capped, definition, study_file

SPACE = Space(
    [
        *SMALL.parameters,
        Integer.range("threads", 1, 8, default=1),
        Choice("diagonaliser", ("david", "cg", "ppcg", "paro"), default="david"),
        Integer.range("bands", 1, 32, optional=True),
    ],
    [*SMALL.constraints, Constraint("cores", "np * threads <= 96", "a node has 96")],
)


def seconds_of(configuration: Configuration) -> float:
    """Return what is measured of a configuration, from about 0.4 on."""
    slower = 20.0 / configuration["np"] + abs(np.log2(configuration["block"] / 128)) / 8
    slower += abs(configuration["threads"] - 2) / 6 + 0.2 * (configuration["diagonaliser"] != "ppcg")
    slower += abs(configuration.get("npool", 1) - 4) / 30 + abs(configuration.get("bands", 8) - 16) / 40
    return float(0.33 + 0.4 * slower)


class OneCore(PaperObjective):
    """The paper objective with jobs of one slot."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        return Job(("paper", json.dumps(dict(configuration))), context.folder)


class Clock:
    """The time on which jobs run, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self._cpu_s = time.process_time()

    def __call__(self) -> float:
        """Return the time, with what the coordinator has taken since it was asked last."""
        cpu_s = time.process_time()
        self.now += cpu_s - self._cpu_s
        self._cpu_s = cpu_s
        return self.now


class TimedExecutor:
    """Ends each job when its time has come; looks every `poll_s`."""

    def __init__(self, clock: Clock, job_s: float, poll_s: float) -> None:
        self._clock = clock
        self._job_s = job_s
        self._poll_s = poll_s
        self._rng = np.random.default_rng(0)
        self._running: list[tuple[float, int, Task, Outcome]] = []
        self.launches: list[tuple[float, float]] = []

    def submit(self, task: Task) -> None:
        drawn = seconds_of(json.loads(task.job.argv[1])) * self._rng.lognormal(0.0, 0.02)
        outcome = Outcome(metrics={"wall_s": drawn}, usage=Usage(elapsed_s=drawn))
        if task.cap is not None and drawn > task.cap.bound:
            outcome = capped(task.cap.bound)
        start = self._clock()
        end = start + self._job_s * self._rng.lognormal(0.0, 0.1)
        self.launches.append((start, end))
        heapq.heappush(self._running, (end, len(self.launches), task, outcome))

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        now = self._clock()
        if self._running and self._running[0][0] > now:
            self._clock.now = min(now + timeout_s, self._running[0][0])
        if self._poll_s:
            self._clock.now = max(self._clock.now, (now // self._poll_s + 1) * self._poll_s)
        ended = []
        while self._running and self._running[0][0] <= self._clock.now:
            _, _, task, outcome = heapq.heappop(self._running)
            ended.append((task, outcome))
        return ended

    def cancel_all(self) -> None:
        self._running.clear()

    def busy(self, slots: int) -> float:
        """Return which share of the slots had a job, from when all had one until the last launch."""
        flying: list[float] = []
        full = 0.0
        for start, end in self.launches:
            while flying and flying[0] <= start:
                heapq.heappop(flying)
            heapq.heappush(flying, end)
            if len(flying) == slots:
                full = start
                break
        last = self.launches[-1][0]
        used = sum(max(0.0, min(end, last) - max(start, full)) for start, end in self.launches)
        return used / (slots * (last - full)) if last > full > 0.0 else float("nan")


class Gauge(ListDisplay):
    """Keeps nothing of what is shown but the figures, at every thousandth of the trials."""

    def __init__(self, clock: Clock, every: int) -> None:
        super().__init__()
        self._clock = clock
        self._every = every
        self.points: list[tuple[int, float, float, float]] = []

    def line(self, text: str) -> None:
        pass

    def update(self, status: object) -> None:
        finished = status.finished  # type: ignore[attr-defined]
        if not self.points or finished >= self.points[-1][0] + self._every:
            self.points.append((finished, time.process_time(), self._clock.now, resident_mib()))
            print(*self.points[-1], file=sys.stderr, flush=True)


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measured(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    clock = Clock()
    store = StudyStore.create(f"sqlite:///{folder / 'scale.db'}", "paper", definition(SPACE))
    store.use(sampler_of(SPACE, SamplerSection(name=options.sampler)))
    executor = TimedExecutor(clock, options.job_s, options.poll_s)
    display = Gauge(clock, max(1, options.trials // 20))
    bench = Bench(OneCore(), executor, CorePool(range(options.slots)), folder / "runs", display, clock=clock)
    repeats = ONCE if options.once else RepeatsSection()
    study = study_file(budget={"trials": options.trials, "workers": options.slots}, repeats=repeats)
    before = resident_mib()
    start = time.perf_counter()
    StudyRunner(store, SPACE, bench, study).tune()
    display.points.append((options.trials, time.process_time(), clock.now, resident_mib()))
    return {
        "trials": options.trials,
        "slots": options.slots,
        "sampler": options.sampler,
        "optuna": optuna.__version__,
        "wall_s": time.perf_counter() - start,
        "runs": len(store.runs()),
        "memory_before_mib": before,
        "memory_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "points": windows(display.points),
        "busy": executor.busy(options.slots),
    }


def windows(points: Sequence[tuple[int, float, float, float]]) -> list[dict[str, float]]:
    found = []
    for (first, cpu, clock, _), (last, cpu_after, clock_after, mib) in pairwise(points):
        if last > first:
            per_trial = 1e3 * (cpu_after - cpu) / (last - first)
            rate = (last - first) / max(clock_after - clock, 1e-9)
            found.append({"from": first, "to": last, "ms": per_trial, "per_s": rate, "mib": mib})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=1_000)
    parser.add_argument("--job-s", type=float, default=30.0)
    parser.add_argument("--poll-s", type=float, default=0.0)
    parser.add_argument("--sampler", default="autotune")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", help="write cProfile's figures there")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    profile = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory() as folder:
        result = profile.runcall(measured, options, Path(folder)) if profile else measured(options, Path(folder))
    if profile:
        profile.dump_stats(options.profile)
    if options.json:
        json.dump(result, sys.stdout, indent=2)
        return
    print(f"{'trials':>15} {'CPU [ms/trial]':>15} {'trials/s':>9} {'memory [MiB]':>13}")
    for row in result["points"]:
        print(f"{row['from']:>7}-{row['to']:<7} {row['ms']:>15.1f} {row['per_s']:>9.1f} {row['mib']:>13.0f}")
    print(
        f"{result['runs']} runs, slots busy {result['busy']:.1%} of the time, {result['wall_s']:.0f} s in all, "
        f"memory {result['memory_before_mib']:.0f} MiB before, {result['memory_peak_mib']:.0f} MiB at most"
    )


if __name__ == "__main__":
    main()
