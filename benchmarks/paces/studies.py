"""What real studies cost with and without short runs, in turns: tuning, everything, and the verdict.

    python -m benchmarks.paces.studies gromacs|lammps [--studies 2] [--trials 40] [--json]

The ready studies of these programs, with runs of some seconds: once as they are, once with a `[fidelity]` whose short
runs are a tenth as long, with the same seed. Core-seconds are elapsed seconds of runs times the cores that they have.
`over the default` is what the verdict says. Nothing else should run on the machine. Needs gmx or lmp (Debian: gromacs,
lammps).
"""

import argparse
import json
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).parent.parent.parent
SHARE = 10
"""A whole run is so many times as long as a short one."""
STEPS = {"gromacs": 3000, "lammps": 2000}
AT_THE_END = ("select", "verdict", "duet")
"""Series of runs that compare, after tuning."""
_RUN = "    { line = \"run {steps}\", replaces = '^\\s*run\\s' },\n"


@dataclass(frozen=True)
class Cost:
    """What a study cost, in core-seconds, and what its verdict says of the winner over the default."""

    program: str
    seed: int
    short_runs: bool
    runs: int
    tuning_core_s: float
    all_core_s: float
    over_the_default: float
    low: float
    high: float
    winner: str

    def line(self) -> str:
        """Return what a person reads."""
        lengths = "short and whole" if self.short_runs else "whole"
        return (
            f"{self.program}, seed {self.seed}, {lengths} runs: {self.runs} runs; "
            f"core-seconds: tuning {self.tuning_core_s:.0f}, all {self.all_core_s:.0f}; "
            f"over the default: {self.over_the_default:.3f} ({self.low:.3f} to {self.high:.3f}); {self.winner}"
        )


def studied(program: str, seed: int, trials: int, *, short_runs: bool) -> Cost:
    """Run a study in a folder of its own, as a user does."""
    with TemporaryDirectory(prefix="short-runs-") as name:
        file = written(program, Path(name))
        length = _fidelity(STEPS[program]) if short_runs else [f"space.derived.steps={STEPS[program]}"]
        settings = [word for setting in [f"sampler.seed={seed}", *length] for word in ("--set", setting)]
        autotune = [sys.executable, "-m", "autotune"]
        command = [*autotune, "study", file, "--trials", str(trials), "--noise", "accept", "--quiet", *settings]
        subprocess.run(command, cwd=name, check=True, stdout=subprocess.DEVNULL)
        told = [
            json.loads(subprocess.run([*autotune, *words], cwd=name, check=True, capture_output=True).stdout)
            for words in (["show", program, "--json"], ["runs", program, "--json"])
        ]
    return cost(program, seed, *told, short_runs=short_runs)


def written(program: str, folder: Path) -> str:
    """Return the study file: the ready one, whose input says how many steps a run has."""
    ready = ROOT / "studies" / f"{program}.toml"
    if program != "lammps":
        return str(ready)
    text = ready.read_text(encoding="utf-8").replace("inputs/", f"{ready.parent / 'inputs'}/")
    text = text.replace("lines = [\n", f"lines = [\n{_RUN}", 1)
    (folder / ready.name).write_text(f"{text}\n[space.derived]\nsteps = {STEPS[program]}\n", encoding="utf-8")
    return f"./{ready.name}"


def _fidelity(steps: int) -> list[str]:
    return ["fidelity.parameter=steps", f"fidelity.low={steps // SHARE}", f"fidelity.high={steps}"]


def cost(program: str, seed: int, shown: dict[str, Any], runs: list[dict[str, Any]], *, short_runs: bool) -> Cost:
    """Return what a study cost whose `autotune show` and `autotune runs` said this."""
    spent = [
        (run["series"], run["outcome"]["usage"]["elapsed_s"] * len(run["job"]["resources"]["cpus"])) for run in runs
    ]
    speed_up, best = shown["speed_up"], shown["best"]["configuration"]
    return Cost(
        program,
        seed,
        short_runs,
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
    parser.add_argument("program", choices=STEPS)
    parser.add_argument("--studies", type=int, default=2)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    for seed in range(options.studies):
        for short_runs in (False, True):
            told = studied(options.program, seed, options.trials, short_runs=short_runs)
            print(json.dumps(asdict(told)) if options.json else told.line(), flush=True)


if __name__ == "__main__":
    main()
