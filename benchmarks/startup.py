"""CPU time that commands take to start, as a multiple of that of the imports which they cannot do without.

    python -m benchmarks.startup [--pairs 15] [--path FOLDER]
    python -m benchmarks.startup --against FOLDER       # as a multiple of what another version takes

Each command and its reference run in turn, so that other load touches both. CPU time (user and system, of the process
and its children) is measured, not time that passes. A pair gives a ratio; printed are the medians
and the quartiles of all pairs. `--path` names the folder of the version to measure.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

TYPER, OPTUNA = ("-c", "import typer"), ("-c", "import optuna")
STUDY = "recorded"
CASES = (
    (("--help",), TYPER),
    (("study", "--help"), TYPER),
    (("list",), OPTUNA),
    (("best", STUDY), OPTUNA),
    (("show", STUDY), OPTUNA),
    (("trials", STUDY), OPTUNA),
)


def cpu_s(argv: Sequence[str], folder: Path, environment: dict[str, str]) -> float:
    """Return the CPU time of a command and of its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(argv, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def quartiles(values: Sequence[float]) -> tuple[float, float, float]:
    lower, middle, upper = statistics.quantiles(values, n=4)
    return lower, middle, upper


@dataclass(frozen=True)
class Start:
    """What is started, with which version of the project, and what a line calls it."""

    said: str
    argv: Sequence[str]
    path: Path

    def cpu_s(self, folder: Path) -> float:
        """Return the CPU time that it takes in a folder."""
        environment = os.environ | {"PYTHONPATH": str(self.path.resolve()), "COLUMNS": "80"}
        environment.pop("AUTOTUNE_STORAGE", None)
        return cpu_s([sys.executable, *self.argv], folder, environment)


def compare(one: Start, other: Start, pairs: int, folder: Path) -> str:
    """Return a line with the CPU time of a command, of its reference, and their ratio."""
    # The first reads files that are in nobody's memory yet.
    for each in (one, other):
        each.cpu_s(folder)
    found = [(one.cpu_s(folder), other.cpu_s(folder)) for _ in range(pairs)]
    own, others = (statistics.median(column) for column in zip(*found, strict=True))
    lower, middle, upper = quartiles([first / second for first, second in found])
    return (
        f"{one.said:24} {own * 1e3:6.0f} ms   {other.said} {others * 1e3:6.0f} ms   "
        f"ratio {middle:5.2f} ({lower:.2f} to {upper:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--path", type=Path, default=Path(__file__).parents[1], help="folder of the version to measure")
    parser.add_argument("--against", type=Path, help="folder of another version, with which it is compared")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="autotune-startup-") as name:
        folder = Path(name)
        # The older version makes what both can read.
        made = ("-m", "autotune", "study", "replay", "--name", STUDY, "--trials", "20")
        Start("", made, given.against or given.path).cpu_s(folder)
        for command, imported in CASES:
            argv = ("-m", "autotune", *command)
            other = Start(f"python -c '{imported[1]}'", imported, given.path)
            if given.against is not None:
                other = Start(str(given.against), argv, given.against)
            print(
                compare(Start(f"autotune {' '.join(command)}", argv, given.path), other, given.pairs, folder),
                flush=True,
            )


if __name__ == "__main__":
    main()
