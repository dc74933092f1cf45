"""Studies of pw.x beside a real neighbour: what a verdict says, what the winner is worth alone, and what both cost.

    python -m benchmarks.verdicts.pwx_neighbour [--trials 20] [--studies 1] [--load 0.5,1.0] [--only cpu] [--noise wait]

`autotune study qe` on all cores of this machine, as a user starts it; the neighbour is that of `real_neighbour.py`.
When the study has ended and the neighbour has left, `autotune watch` runs its winner and the default again in fresh
pairs: their median ratio is what the winner is worth `alone`. `near` says whether that is within 5 % of the best winner
of all studies so far, the first of which has no neighbour. A study that is refused names no winner: its user keeps the
default. `accept` is what was done before disturbed runs were told apart. Nothing else should run. Needs pw.x, mpirun.
"""

import argparse
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from autotune.errors import ExitCode
from benchmarks.verdicts.real_neighbour import KINDS, neighbour

NEAR = 1.05
_LIMIT_S = 1800.0
_PAIRS = 6
_AUTOTUNE = (sys.executable, "-m", "autotune")


@dataclass(frozen=True)
class Ended:
    """How a study ended, and what its winner's speed-up over the default is: as `told` in its verdict, and `alone`.

    `told` is (value, low, high); both are None where there is no verdict. Seconds of cores are those of all runs.
    """

    kind: str
    load: float
    noise: str
    seed: int
    exit_code: int
    told: tuple[float, float, float] | None
    alone: float | None
    runs: int
    aside: int
    core_s: float
    wall_s: float

    @property
    def used(self) -> float:
        """What the user gains: nothing without a gain that is sure."""
        return self.alone if self.alone and self.told and self.told[1] > 1.0 else 1.0

    def line(self, best: float) -> str:
        """Return what a person reads; `best` is the highest gain of all studies so far."""
        ends = {0: "verdict", ExitCode.CANNOT_RUN_HERE: "refused"}
        told = "none" if self.told is None else "{:.3f} ({:.3f} to {:.3f})".format(*self.told)
        alone = "none" if self.alone is None else f"{self.alone:.3f}"
        return (
            f"{self.kind}, load {self.load:g}, {self.noise}, seed {self.seed}: {ends.get(self.exit_code, 'failed')}; "
            f"told {told}; alone {alone}; near {'yes' if self.used * NEAR >= best else 'no'}; "
            f"{self.runs} runs, {self.aside} set aside; {self.core_s:.0f} core-seconds, {self.wall_s:.0f} s"
        )


def studied(kind: str, load: float, noise: str, trials: int, seed: int) -> Ended:
    """Run a study in a folder of its own beside the neighbour, then compare its winner alone."""
    with TemporaryDirectory(prefix="beside-") as name:
        folder = Path(name)
        words = ["--trials", str(trials), "--noise", noise, "--wait", "--quiet", "--set", f"sampler.seed={seed}"]
        start, code = time.monotonic(), -1
        with neighbour(kind, load, folder), suppress(subprocess.TimeoutExpired):
            code = _ended(["study", "qe", *words], folder)
        wall_s = time.monotonic() - start
        runs, told = _said(["trials", "qe", "--runs"], folder), _speed_up(folder) if code == 0 else None
        alone = _alone(folder) if told is not None else None
    core_s = sum(run["outcome"]["usage"]["elapsed_s"] * len(run["job"]["resources"]["cpus"]) for run in runs)
    aside = sum(run["series"].startswith("aside") for run in runs)
    return Ended(kind, load, noise, seed, code, told, alone, len(runs), aside, core_s, wall_s)


def _ended(words: list[str], folder: Path) -> int:
    return subprocess.run(
        [*_AUTOTUNE, *words], cwd=folder, capture_output=True, timeout=_LIMIT_S, check=False
    ).returncode


def _said(words: list[str], folder: Path) -> Any:  # noqa: ANN401 (JSON)
    asked = subprocess.run([*_AUTOTUNE, *words, "--json"], cwd=folder, capture_output=True, text=True, check=False)
    return json.loads(asked.stdout or "[]")


def _speed_up(folder: Path) -> tuple[float, float, float] | None:
    verdict = (_said(["best", "qe"], folder) or {}).get("verdict") or {}
    return (verdict["speed_up"], verdict["low"], verdict["high"]) if verdict.get("low") else None


def _alone(folder: Path) -> float | None:
    """Return the median ratio of fresh pairs, which the watch of a study makes."""
    found = _said(["watch", "qe", "--pairs", str(_PAIRS), "--noise", "wait"], folder) or {}
    pairs = [pair for check in found.get("checks", []) for pair in check["pairs"]]
    return median(default / winner for default, winner in pairs) if pairs else None


def settings(options: argparse.Namespace) -> Iterator[tuple[str, float, str]]:
    """Yield what is beside the studies, and what is done about it: nobody first."""
    modes = [options.noise] if options.noise else ["accept", "wait"]
    yield "nobody", 0.0, modes[-1]
    for kind in [options.only] if options.only else KINDS[1:]:
        for load in options.load:
            for noise in modes:
                yield kind, load, noise


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--studies", type=int, default=1, help="of each kind")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--load", type=lambda text: [float(one) for one in text.split(",")], default=[0.5, 1.0])
    parser.add_argument("--only", choices=KINDS[1:], help="only this neighbour, and nobody")
    parser.add_argument("--noise", choices=("accept", "wait"), help="only this mode")
    options = parser.parse_args()
    # `timeout` ends what this has started, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    best = 1.0
    for kind, load, noise in settings(options):
        for seed in range(options.seed, options.seed + options.studies):
            ended = studied(kind, load, noise, options.trials, seed)
            best = max(best, ended.used)
            print(ended.line(best), flush=True)


if __name__ == "__main__":
    main()
