"""What the coordinator costs with 1,000 runs in flight and up to 10,000 trials, and how busy it keeps them.

    python benchmarks/scale.py [--trials 10000] [--slots 1000] [--job-s 30] [--sampler autotune] [--poll-s 0]
                               [--batch] [--ahead 0.1] [--submit-ms 0] [--folder FOLDER] [--once] [--json]
                               [--profile FILE]

Jobs are simulated: one takes about `--job-s`, whatever is measured of it, on a clock that stands still while the
coordinator waits, jumps to the next end, and runs on by the CPU time that the coordinator takes. So a coordinator that
is too slow leaves slots empty, as it would on a cluster. Storage is SQLite on disk; the folders of runs are real. With
`--once` every configuration runs once; else runs are repeated, capped and compared as in any study. The figures so far
are written to stderr.

With `--batch` jobs take their time by the clock on the wall, in a Slurm on paper (`paperslurm.py`): job scripts,
submissions, status files and polls are real, and made by what makes them for a real Slurm; what the paper takes is not
counted. The share `--ahead` of the slots are jobs in the queue, the queue is asked every `--poll-s` (10), and `sbatch`
takes `--submit-ms`: nothing on paper, 26 ms where Slurm is on the same machine.
"""

import argparse
import cProfile
import heapq
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import optuna

from autotune.coordination.resources import QueuePool
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.core_pool import CorePool
from autotune.execution.executor import Executor
from autotune.execution.task import Task
from autotune.records.outcome import Outcome
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.storage.study_store import StudyStore
from autotune.studyfile import RepeatsSection, SamplerSection
from autotune.tuning.loop import TuningLoop
from benchmarks.coordinator import SPACE as SMALL
from benchmarks.paperslurm import PaperSlurm
from launchers import Job, Usage
from launchers.batch import BatchLauncher
from launchers.batch.commands import Answer
from launchers.batch_systems.slurm import SLURM
from launchers.node import JOB_FILE
from launchers.site import Site
from objectives.base import Context, Measurement, Output, ProgressReader
from spaces import Choice, Configuration, Constraint, Integer, Space
from tests.support.fakes import ONCE, SECONDS, ListDisplay, PaperObjective, capped, definition, study_file
from tests.support.managers import managed

INPUT = "program.in"

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


class TimedExecutor(Executor):
    """Ends each job when its time has come; looks every `poll_s`."""

    def __init__(self, clock: Clock, job_s: float, poll_s: float) -> None:
        self._clock = clock
        self._job_s = job_s
        self._poll_s = poll_s
        self._rng = np.random.default_rng(0)
        self._running: list[tuple[float, int, Task, Outcome]] = []
        self.launches: list[tuple[float, float]] = []
        self.newest = 0.0

    def submit(self, task: Task) -> None:
        drawn = seconds_of(json.loads(task.job.argv[1])) * self._rng.lognormal(0.0, 0.02)
        outcome = Outcome(metrics={"wall_s": drawn}, usage=Usage(elapsed_s=drawn))
        if task.cap is not None and drawn > task.cap.bound:
            outcome = capped(task.cap.bound)
        start = self._clock()
        end = start + self._job_s * self._rng.lognormal(0.0, 0.1)
        self.launches.append((start, end))
        if task.job.name.isdigit():
            self.newest = start
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


def busy(jobs: Sequence[tuple[float, float]], slots: int, last: float) -> float:
    """Return which share of the slots had one of `jobs`, (start, end), from when all had one until `last`."""
    flying: list[float] = []
    full = float("inf")
    for start, end in jobs:
        while flying and flying[0] <= start:
            heapq.heappop(flying)
        heapq.heappush(flying, end)
        if len(flying) == slots:
            full = start
            break
    used = sum(max(0.0, min(end, last) - max(start, full)) for start, end in jobs)
    return used / (slots * (last - full)) if last > full else float("nan")


class Printing(PaperObjective):
    """The paper objective with jobs of one core that print what is measured, and how long they take."""

    def job(self, configuration: Configuration, context: Context) -> Job:
        (context.folder / INPUT).write_text("\n".join(f"{name} = {value}" for name, value in configuration.items()))
        return Job(("paper", json.dumps(dict(configuration))), context.folder, time_limit_s=600.0)

    def progress_reader(self) -> ProgressReader:
        return lambda _: None

    def measure(self, output: Output) -> Measurement:
        return Measurement({SECONDS.name: float(output.stdout.split()[-1])})


class Cluster:
    """A Slurm on paper with an executor that uses it, and what happened there when."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._rng = np.random.default_rng(0)
        self._job_s = options.job_s
        self.newest = 0.0
        self.launches: list[tuple[float, float]] = []
        self.slurm = PaperSlurm(options.slots, self._duration_s, self._prints)
        site = Site("slurm", cores_per_node=64, max_jobs=10**6, poll_s=options.poll_s or 10.0)
        self._submit_s = options.submit_ms / 1e3
        launcher = BatchLauncher(SLURM.scheduler, site, commands=self._command)
        self.executor = BatchExecutor(launcher, self._note, lambda text: print(text, file=sys.stderr, flush=True))

    def _command(
        self,
        argv: Sequence[str],
        folder: Path | None = None,
        answer_file: Path | None = None,
        input_file: Path | None = None,
    ) -> Answer:
        if argv[0] == "sbatch":
            time.sleep(self._submit_s)
        return self.slurm(argv, folder, answer_file, input_file)

    def _note(self, name: str, _: str) -> bool:
        if name.isdigit():
            self.newest = time.monotonic()
        return True

    def _duration_s(self, _: Path) -> float:
        found = float(self._job_s * self._rng.lognormal(0.0, 0.1))
        now = time.monotonic()
        self.launches.append((now, now + found))
        return found

    def _prints(self, folder: Path, duration_s: float) -> str:
        configuration = json.loads(json.loads((folder / JOB_FILE).read_bytes())["argv"][1])
        return f"took {duration_s:.1f} s\nwall_s {seconds_of(configuration) * self._rng.lognormal(0.0, 0.02)}\n"


class Gauge(ListDisplay):
    """Keeps nothing of what is shown but the figures, at every twentieth of the trials."""

    def __init__(self, clock: Callable[[], float], cpu_s: Callable[[], float], every: int) -> None:
        super().__init__()
        self._clock = clock
        self._cpu_s = cpu_s
        self._every = every
        self.points: list[tuple[int, float, float, float]] = []

    def line(self, text: str) -> None:
        pass

    def update(self, status: object) -> None:
        finished = status.finished  # type: ignore[attr-defined]
        if not self.points or finished >= self.points[-1][0] + self._every:
            self.note(finished)

    def note(self, finished: int) -> None:
        """Keep the figures of this moment."""
        self.points.append((finished, self._cpu_s(), self._clock(), resident_mib()))
        print(*self.points[-1], file=sys.stderr, flush=True)


def resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def measured(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    """Run a study, and return what it took."""
    before = resident_mib()
    start = time.perf_counter()
    found = on_cluster(options, folder) if options.batch else in_simulation(options, folder)
    return found | {
        "trials": options.trials,
        "slots": options.slots,
        "sampler": options.sampler,
        "optuna": optuna.__version__,
        "wall_s": time.perf_counter() - start,
        "memory_before_mib": before,
        "memory_peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def in_simulation(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    clock = Clock()
    executor = TimedExecutor(clock, options.job_s, options.poll_s)
    display = Gauge(clock, time.process_time, max(1, options.trials // 20))
    pool, gate = CorePool(range(options.slots)), RunGate(clock=clock)
    manager = managed(executor, folder / "runs", objective=OneCore(), pool=pool, display=display, gate=gate)
    runs = tuned(options, folder, manager, options.slots)
    return {
        "runs": runs,
        "points": windows(display.points),
        "busy": busy(executor.launches, options.slots, executor.newest),
    }


def on_cluster(options: argparse.Namespace, folder: Path) -> dict[str, object]:
    cluster = Cluster(options)
    slurm = cluster.slurm
    display = Gauge(time.monotonic, lambda: time.process_time() - slurm.cpu_s, max(1, options.trials // 20))
    manager = managed(cluster.executor, folder / "runs", objective=Printing(), pool=QueuePool(), display=display)
    began, cpu_s = time.monotonic(), time.process_time()
    runs = tuned(options, folder, manager, int(options.slots * (1.0 + options.ahead)))
    took_s = time.monotonic() - began
    slurm.close()
    jobs = cluster.launches
    whole_s = max(end for _, end in jobs) - jobs[0][0]
    files = [entry for entry in (folder / "runs").rglob("*") if entry.is_file()]
    return {
        "runs": runs,
        "points": windows(display.points),
        "busy": busy(jobs, options.slots, cluster.newest),
        "busy_all": sum(end - start for start, end in jobs) / (options.slots * whole_s),
        "cpu_ms_per_trial": 1e3 * (time.process_time() - cpu_s - slurm.cpu_s) / options.trials,
        "paper_cpu_s": slurm.cpu_s,
        "polls_per_minute": 60.0 * slurm.polls / took_s,
        "jobs": len(jobs),
        "most_running": slurm.most_running,
        "files_per_run": len(files) / runs,
        "bytes_per_run": sum(entry.stat().st_size for entry in files) / runs,
    }


def tuned(options: argparse.Namespace, folder: Path, manager: RunManager, workers: int) -> int:
    """Run the study; return how many runs it had."""
    store = StudyStore.create(f"sqlite:///{folder / 'scale.db'}", "paper", definition(SPACE))
    asker = Asker(store, sampler_of(SPACE, SamplerSection(name=options.sampler)))
    repeats = ONCE if options.once else RepeatsSection()
    study = study_file(budget={"trials": options.trials, "workers": workers}, repeats=repeats)
    TuningLoop(asker, manager, study).tune()
    manager.display.note(options.trials)  # type: ignore[attr-defined]
    return len(store.runs())


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
    parser.add_argument("--batch", action="store_true", help="through job scripts and a Slurm on paper")
    parser.add_argument("--ahead", type=float, default=0.1)
    parser.add_argument("--submit-ms", type=float, default=0.0, help="how long sbatch takes")
    parser.add_argument("--folder", type=Path, help="where the study lies meanwhile: a file system on a disk")
    parser.add_argument("--once", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--profile", help="write cProfile's figures there")
    options = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    profile = cProfile.Profile() if options.profile else None
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
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
        f"{result['runs']} runs, slots busy {result['busy']:.1%} of the time from when all were to the last new trial, "
        f"{result['wall_s']:.0f} s in all, "
        f"memory {result['memory_before_mib']:.0f} MiB before, {result['memory_peak_mib']:.0f} MiB at most"
    )
    if options.batch:
        print(
            f"{result['cpu_ms_per_trial']:.1f} ms CPU a trial (and {result['paper_cpu_s']:.0f} s of Slurm's on paper), "
            f"slots busy {result['busy_all']:.1%} from the first start to the last end, "
            f"{result['most_running']} jobs at most, {result['polls_per_minute']:.1f} polls a minute, "
            f"{result['files_per_run']:.1f} files and {result['bytes_per_run']:.0f} bytes a run"
        )


if __name__ == "__main__":
    main()
