"""Compare the cost of real studies with this version and with an earlier one, in turns.

    python -m benchmarks.paces.real_studies gromacs|lammps|qe [--before FOLDER] [--studies 2] [--trials 40] [--json]

Runs the shipped study of a program with the checkout in FOLDER, if one is given, and with this version, with the same
seed. Runs take some seconds, except those of qe. Core-seconds are the elapsed seconds of runs times their number of
cores; `over the default` is the speed-up of the verdict. Nothing else should run on the machine. Needs gmx, lmp or pw.x
(Debian: gromacs, lammps, quantum-espresso).
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent.parent
STEPS = {"gromacs": 750, "lammps": 500}
AT_THE_END = ("select", "verdict", "duet")
"""Series of runs after tuning, which compare candidates."""
_RUN = "    { line = \"run {steps}\", replaces = '^\\s*run\\s' },\n"


@dataclass(frozen=True)
class Way:
    """A version of autotune in a folder, and options of its `study` command."""

    name: str
    version: Path = ROOT
    options: tuple[str, ...] = ("--noise", "accept")


@dataclass(frozen=True)
class Cost:
    """The cost of a study in core-seconds, and its verdict on the winner over the default."""

    program: str
    seed: int
    way: str
    runs: int
    tuning_core_s: float
    all_core_s: float
    over_the_default: float
    low: float
    high: float
    winner: str

    def line(self) -> str:
        """Return the cost as a line of text."""
        return (
            f"{self.program}, seed {self.seed}, {self.way}: {self.runs} runs; "
            f"core-seconds: tuning {self.tuning_core_s:.0f}, all {self.all_core_s:.0f}; "
            f"over the default: {self.over_the_default:.3f} ({self.low:.3f} to {self.high:.3f}); {self.winner}"
        )


def ways(before: Path | None) -> Iterator[Way]:
    """Yield the versions to compare, in the order of their studies."""
    if before is not None:
        yield Way("before", before.resolve(), options=())
    yield Way("now")


def run_study(program: str, seed: int, trials: int, way: Way) -> Cost:
    """Run a study in its own folder with the command of a user."""
    with TemporaryDirectory(prefix="studies-") as name:
        settings = [word for setting in _settings(program, seed) for word in ("--set", setting)]
        file = write_study(program, Path(name), way.version)
        study = ["study", file, "--trials", str(trials), "--quiet", *way.options, *settings]
        _autotune(study, way, name)
        answers = [
            json.loads(_autotune([*words, "--json"], way, name))
            for words in (["best", program], ["trials", program, "--runs"])
        ]
    return cost(program, seed, way.name, *answers)


def _autotune(words: Sequence[str], way: Way, folder: str) -> bytes:
    command = [sys.executable, "-m", "autotune", *words]
    environment = {**os.environ, "PYTHONPATH": str(way.version)}
    return subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE).stdout


def _settings(program: str, seed: int) -> Iterator[str]:
    yield f"sampler.seed={seed}"
    if program in STEPS:
        yield f"space.derived.steps={STEPS[program]}"


def write_study(program: str, folder: Path, version: Path) -> str:
    """Return the study file of a version; for LAMMPS, write a copy that sets the number of steps in the input."""
    ready = version / "studies" / f"{program}.toml"
    if program != "lammps":
        return str(ready)
    text = ready.read_text(encoding="utf-8").replace("inputs/", f"{ready.parent / 'inputs'}/")
    text = text.replace("lines = [\n", f"lines = [\n{_RUN}", 1)
    (folder / ready.name).write_text(f"{text}\n[space.derived]\nsteps = {STEPS[program]}\n", encoding="utf-8")
    return f"./{ready.name}"


def cost(program: str, seed: int, way: str, shown: dict[str, Any], runs: list[dict[str, Any]]) -> Cost:
    """Return the cost of a study from the answers of `autotune best` and `autotune trials --runs`."""
    spent = [
        (run["series"], run["outcome"]["usage"]["elapsed_s"] * len(run["job"]["resources"]["cpus"])) for run in runs
    ]
    speed_up, best = shown["speed_up"], shown["best"]["configuration"]
    return Cost(
        program,
        seed,
        way,
        len(runs),
        round(sum(core_s for series, core_s in spent if not series.startswith(AT_THE_END)), 1),
        round(sum(core_s for _, core_s in spent), 1),
        round(speed_up["ratio"], 3),
        round(speed_up["low"], 3),
        round(speed_up["high"], 3),
        " ".join(f"{name}={value}" for name, value in best.items()),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=(*STEPS, "qe"))
    parser.add_argument("--before", type=Path, help="checkout of an earlier version")
    parser.add_argument("--studies", type=int, default=2)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for seed in range(options.studies):
        for way in ways(options.before):
            found = run_study(options.program, seed, options.trials, way)
            print(json.dumps(asdict(found)) if options.json else found.line(), flush=True)


if __name__ == "__main__":
    main()
