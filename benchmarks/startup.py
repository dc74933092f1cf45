"""CPU time that commands take to start, as a multiple of that of the imports which they cannot do without.

    python -m benchmarks.startup [--pairs 15] [--path FOLDER]

Each command and its reference run in turn, so that other load touches both. CPU time (user and system, of the process
and its children) is measured, not time that passes. A pair gives a ratio; printed are the medians
and the quartiles of all pairs. `--path` names the folder of another version.
"""

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
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


def compare(
    command: Sequence[str], reference: Sequence[str], pairs: int, folder: Path, environment: dict[str, str]
) -> str:
    """Return a line with the CPU time of a command, of its reference, and their ratio."""
    argv, other = [sys.executable, "-m", "autotune", *command], [sys.executable, *reference]
    # The first reads files that are in nobody's memory yet.
    for one in (argv, other):
        cpu_s(one, folder, environment)
    found = [(cpu_s(argv, folder, environment), cpu_s(other, folder, environment)) for _ in range(pairs)]
    own = statistics.median(one for one, _ in found)
    others = statistics.median(one for _, one in found)
    lower, middle, upper = quartiles([one / another for one, another in found])
    name = f"autotune {' '.join(command)}"
    return (
        f"{name:24} {own * 1e3:6.0f} ms   python -c '{reference[1]}' {others * 1e3:6.0f} ms   "
        f"ratio {middle:5.2f} ({lower:.2f} to {upper:.2f})"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--path", type=Path, default=Path(__file__).parents[1], help="folder of the version to measure")
    given = parser.parse_args()
    environment = os.environ | {"PYTHONPATH": str(given.path.resolve()), "COLUMNS": "80"}
    environment.pop("AUTOTUNE_STORAGE", None)
    with tempfile.TemporaryDirectory(prefix="autotune-startup-") as name:
        folder = Path(name)
        made = ["study", "replay", "--name", STUDY, "--trials", "20"]
        subprocess.run(
            [sys.executable, "-m", "autotune", *made], cwd=folder, env=environment, capture_output=True, check=True
        )
        for command, reference in CASES:
            print(compare(command, reference, given.pairs, folder, environment), flush=True)


if __name__ == "__main__":
    main()
