"""Run real studies beside a real neighbour, with and without detection of disturbed runs.

    python benchmarks/verdicts/real_neighbour.py [--studies 3] [--trials 8] [--only memory] [--noise wait] [--load 0.5]
        [--verdict duet]

Prints winners, widths of verdicts, false gains and cost. The program is a kernel in C that streams over an array; its
two parameters set the number of rounds, so the best configuration is known in advance. In A/A studies all
configurations have the same number of rounds. The neighbour runs on each core, in another session and, where this user
may create one, another cgroup. It computes, copies memory, or writes and reads a file that does not stay in the page
cache, in bursts that take the share `--load` of the time. Nothing else should run then.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parent.parent.parent))

from autotune.errors import ExitCode
from benchmarks.verdicts.trust import share

_KERNEL = r"""
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
int main(int argc, char **argv) {
    int rounds = atoi(argv[1]);
    size_t count = 1 << 20;
    double *from = malloc(count * sizeof *from), *to = malloc(count * sizeof *to), sum = 0.0;
    struct timespec begin, end;
    for (size_t i = 0; i < count; i++) from[i] = i;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (int round = 0; round < rounds; round++) {
        for (size_t i = 0; i < count; i++) to[i] = 1.000001 * from[i] + round;
        sum += to[(size_t)round * 4099 % count];
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    printf("sum %g\nseconds %.6f\n", sum, (end.tv_sec - begin.tv_sec) + 1e-9 * (end.tv_nsec - begin.tv_nsec));
    return 0;
}
"""
# Work of a run relative to the default, by value of each parameter. The fastest run takes about a fifth of a second.
_FACTORS = {"a": {1: 1.0, 2: 0.9, 3: 0.8, 4: 1.1}, "b": {1: 1.0, 2: 0.95, 3: 1.05}}
_ROUNDS = 700
_NEAR = 1.05
_BURST_S = 2.0
_LIMIT_S = 600.0
_MIB = 1 << 20
KINDS = ("nobody", "cpu", "memory", "page cache")


def relative(a: int, b: int) -> float:
    """Return the work of a configuration relative to the default's."""
    return _FACTORS["a"][a] * _FACTORS["b"][b]


BEST = min(relative(a, b) for a in _FACTORS["a"] for b in _FACTORS["b"])


def load(kind: str, part: float, folder: Path) -> None:
    """Act as the neighbour on one core until the parent process ends."""
    block, file, parent = bytearray(64 * _MIB), folder / f"neighbour-{os.getpid()}", os.getppid()
    while os.getppid() == parent:
        until = time.monotonic() + _BURST_S * part
        while time.monotonic() < until:
            if kind == "cpu":
                sum(range(100_000))
            elif kind == "memory":
                bytes(block)
            else:
                _write_and_read(file, block)
        time.sleep(_BURST_S * (1.0 - part))


def _write_and_read(file: Path, block: bytes | bytearray) -> None:
    with file.open("wb") as written:
        written.write(block)
        written.flush()
        os.fdatasync(written.fileno())
        os.posix_fadvise(written.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    file.read_bytes()


@contextmanager
def neighbour(kind: str, part: float, folder: Path) -> Iterator[None]:
    """Run a neighbour on each core, in another session and, where that is allowed, in another cgroup."""
    count = 0 if kind == "nobody" else len(os.sched_getaffinity(0))
    words = [sys.executable, __file__, "--be", kind, "--load", str(part), "--folder", str(folder)]
    started = [subprocess.Popen(words, start_new_session=True) for _ in range(count)]
    group = Path("/sys/fs/cgroup", f"autotune-neighbour-{os.getpid()}")
    try:
        with suppress(OSError):
            group.mkdir()
            for process in started:
                (group / "cgroup.procs").write_text(str(process.pid), encoding="ascii")
        yield
    finally:
        for process in started:
            process.send_signal(signal.SIGKILL)
            process.wait()
        with suppress(OSError):
            group.rmdir()


@dataclass(frozen=True)
class Ended:
    """How a study ended: whether its winner is `near` the best, `refused` before a verdict, or `cut` at the limit."""

    near: bool
    gain: bool
    half_width: float | None
    refused: bool
    cut: bool
    runs: int
    core_s: float
    wall_s: float


@dataclass(frozen=True)
class Asked:
    """The settings of a study: number of trials, mode for disturbed runs, and mode of the verdict."""

    trials: int
    noise: str
    verdict: str


def study(folder: Path, asked: Asked, seed: int, *, same: bool) -> Ended:
    """Run a study in its own folder with the command of a user."""
    rounds = {
        name: {value: 1.0 if same else factor for value, factor in factors.items()}
        for name, factors in _FACTORS.items()
    }
    (folder / "kernel.c").write_text(_KERNEL, encoding="ascii")
    subprocess.run(["gcc", "-O2", "-o", folder / "kernel", folder / "kernel.c"], check=True)
    script = folder / "run.py"
    script.write_text(
        f"import os, sys\nof = {rounds!r}\n"
        f"rounds = round({_ROUNDS} * of['a'][int(sys.argv[1])] * of['b'][int(sys.argv[2])])\n"
        f"os.execv({str(folder / 'kernel')!r}, ['kernel', str(rounds)])\n",
        encoding="ascii",
    )
    (folder / "kernel.toml").write_text(
        f"""objective = "command"
[options]
argv = [{json.dumps(sys.executable)}, "-S", {json.dumps(str(script))}, "{{a}}", "{{b}}"]
metrics = [{{ name = "seconds", unit = "s", pattern = 'seconds ([0-9.]+)', kind = "time" }}]
[space.parameters]
a = {{ type = "integer", values = [1, 2, 3, 4], default = 1 }}
b = {{ type = "integer", values = [1, 2, 3], default = 1 }}
[sampler]
seed = {seed}
""",
        encoding="ascii",
    )
    autotune = [sys.executable, "-m", "autotune"]
    command = [*autotune, "study", "./kernel.toml", "--trials", str(asked.trials), "--noise", asked.noise, "--quiet"]
    command += ["--set", f"verdict.mode={asked.verdict}"]
    start, code = time.monotonic(), -1
    with suppress(subprocess.TimeoutExpired):
        code = subprocess.run(command, cwd=folder, capture_output=True, timeout=_LIMIT_S, check=False).returncode
    wall_s = time.monotonic() - start
    told = subprocess.run(
        [*autotune, "best", "kernel", "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    listed = subprocess.run(
        [*autotune, "trials", "kernel", "--runs", "--json"], cwd=folder, capture_output=True, text=True, check=False
    )
    summary, runs = json.loads(told.stdout or "{}"), json.loads(listed.stdout or "[]")
    return _ended(summary, runs, code, wall_s, same=same)


def _ended(summary: dict, runs: list, code: int, wall_s: float, *, same: bool) -> Ended:  # type: ignore[type-arg]
    verdict = summary.get("verdict") or {}
    interval = (verdict["low"], verdict["high"]) if code == 0 and verdict.get("low") else None
    significant = interval is not None and interval[0] > 1.0
    # Without a significant gain, autotune recommends the default.
    used = summary["best"]["configuration"] if significant else {"a": 1, "b": 1}
    return Ended(
        same or relative(used["a"], used["b"]) <= _NEAR * BEST,
        significant,
        (interval[1] / interval[0]) ** 0.5 - 1.0 if interval else None,
        code == ExitCode.CANNOT_RUN_HERE,
        code not in {0, ExitCode.CANNOT_RUN_HERE},
        len(runs),
        sum(run["outcome"]["usage"]["elapsed_s"] for run in runs),
        wall_s,
    )


def row(kind: str, asked: Asked, studies: Sequence[Ended], same: Sequence[Ended]) -> dict[str, str]:
    """Summarize studies; `same` are those whose configurations are equally fast (A/A)."""
    every, widths = [*studies, *same], [one.half_width for one in studies if one.half_width is not None]
    return {
        "neighbour": kind,
        "noise": asked.noise,
        "verdict": asked.verdict,
        "winners within 5 %": f"{sum(one.near for one in studies)} of {len(studies)}",
        "false gains": share(sum(one.gain for one in same), len(same)),
        "refused": f"{sum(one.refused for one in every)} of {len(every)}",
        "failed or cut": str(sum(one.cut for one in every)),
        "half width": f"{median(widths):.1%}" if widths else "none",
        "runs": f"{fmean(one.runs for one in every):.0f}",
        "core-seconds": f"{fmean(one.core_s for one in every):.0f}",
        "wall time": f"{fmean(one.wall_s for one in every):.0f} s",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=3, help="studies per row, and the same number of A/A studies")
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--load", type=float, default=0.5, help="share of the time in which the neighbour works")
    parser.add_argument("--only", choices=KINDS, help="only this neighbour")
    parser.add_argument("--noise", choices=("accept", "wait"), help="only this mode")
    parser.add_argument("--verdict", choices=("interleaved", "duet"), default="interleaved", help="how pairs are made")
    parser.add_argument("--be", choices=KINDS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.be:
        load(options.be, options.load, options.folder)
        return
    # Exit normally on the signal of `timeout`, so that the neighbours are ended, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for kind in [options.only] if options.only else KINDS:
        for noise in [options.noise] if options.noise else ("accept", "wait"):
            asked = Asked(options.trials, noise, options.verdict)
            found: dict[bool, list[Ended]] = {False: [], True: []}
            for number in range(options.studies):
                for same, ended in found.items():
                    with TemporaryDirectory() as scratch, neighbour(kind, options.load, Path(scratch)):
                        ended.append(study(Path(scratch), asked, options.seed + number, same=same))
            told = row(kind, asked, found[False], found[True])
            print("; ".join(f"{key}: {value}" for key, value in told.items()), flush=True)


if __name__ == "__main__":
    main()
