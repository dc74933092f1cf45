"""Record the pace of a program: CPU seconds after every block of steps, for each of some sixty configurations.

    python -m benchmarks.paces.record lammps|gromacs|pwx FILE.csv [--core 0]

Runs each configuration of a full grid once, in random order, with one rank and one thread. Each time the program prints
a step, the CPU time of its process is recorded, so other programs affect the result only through shared caches. The
last row of a run has step -1 and the time of the whole run. Configurations that fail are left out.
`python -m benchmarks.paces.replay --recorded` replays studies on these tables. Needs lmp, gmx, or pw.x (Debian:
lammps, gromacs, quantum-espresso).
"""

import argparse
import csv
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

INPUTS = Path(__file__).parent.parent.parent / "studies" / "inputs"
PSEUDOPOTENTIALS = Path("/usr/share/espresso/pseudo")
GROMACS_STEPS = 500

Values = Mapping[str, str]


@dataclass(frozen=True)
class Command:
    """The command line of a run, and environment variables to add."""

    argv: Sequence[str]
    environment: Values


@dataclass(frozen=True)
class Program:
    """A program to record.

    Attributes:
        parameters: Values of each parameter of the grid.
        step: Regular expression for a step in the output.
        command: Prepares a run in its folder; returns its command.
        prepare: Prepares the folder that holds all runs.
    """

    parameters: Mapping[str, tuple[str, ...]]
    step: str
    command: Callable[[Values, Path], Command]
    prepare: Callable[[Path], None] = lambda _: None

    def grid(self) -> list[dict[str, str]]:
        """Return every configuration."""
        return [dict(zip(self.parameters, values, strict=True)) for values in product(*self.parameters.values())]


def lammps(values: Values, folder: Path) -> Command:
    """Write the input of the melt for these values; return the command."""
    text = (INPUTS / "in.melt").read_text(encoding="utf-8")
    settings = f"neighbor {values['skin']} bin\nneigh_modify {values['renewal']} check yes\n"
    head = "" if values["suffix"] == "none" else f"suffix {values['suffix']}\n"
    (folder / "in.lammps").write_text(head + text.replace("run  ", f"{settings}run  "), encoding="utf-8")
    return Command(["lmp", "-in", "in.lammps"], {})


def gromacs(values: Values, folder: Path) -> Command:
    """Copy the prepared input of the box of water; return the command of a short run."""
    shutil.copy(folder.parent / "topol.tpr", folder)
    argv = ["gmx", "mdrun", "-s", "topol.tpr", "-nsteps", str(GROMACS_STEPS), "-ntmpi", "1", "-ntomp", "1"]
    argv += ["-nstlist", values["nstlist"], "-pin", values["pin"], "-v", "-stepout", "50"]
    return Command(argv, {values["ewald"]: "1", "OMP_NUM_THREADS": "1"})


def prepare_water(folder: Path) -> None:
    """Prepare the input of the box of water, as the shipped study does."""
    for name in ("water.mdp", "water.top"):
        shutil.copy(INPUTS / name, folder)
    box = ["-box", "3.72412", "3.72412", "3.72412"]
    solvate = ["gmx", "solvate", "-cs", "spc216.gro", *box, "-p", "water.top", "-o", "conf.gro"]
    grompp = ["gmx", "grompp", "-f", "water.mdp", "-c", "conf.gro", "-p", "water.top", "-o", "topol.tpr"]
    for command in (solvate, grompp):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)


def pwx(values: Values, folder: Path) -> Command:
    """Write a smaller input of titanium dioxide for these values; the values change the number of iterations."""
    text = (INPUTS / "tio2.in").read_text(encoding="utf-8")
    solver, _, subspace = values["solver"].partition(" ")
    lines = [f"mixing_beta = {values['mixing_beta']}", f"mixing_mode = '{values['mixing_mode']}'"]
    lines += [f"diagonalization = '{solver}'"]
    lines += [f"diago_david_ndim = {subspace}"] if subspace else []
    text = text.replace("mixing_beta = 0.4", "\n  ".join(lines))
    folders = f"pseudo_dir = '{PSEUDOPOTENTIALS}'\n  outdir = './out'\n  prefix"
    text = text.replace("prefix", folders).replace("3 3 4 0 0 0", "1 1 2 0 0 0")
    text = text.replace("ecutwfc = 25", "ecutwfc = 16").replace("ecutrho = 200", "ecutrho = 120")
    (folder / "pw.in").write_text(text, encoding="utf-8")
    return Command(["pw.x", "-in", "pw.in"], {"OMP_NUM_THREADS": "1"})


PROGRAMS = {
    "lammps": Program(
        {
            "skin": ("0.15", "0.2", "0.25", "0.3", "0.4", "0.5", "0.6", "0.8", "1.0", "1.4", "2.0"),
            "renewal": ("delay 0 every 1", "delay 10 every 2"),
            "suffix": ("none", "opt", "intel"),
        },
        r"^[ \t]*(\d+)(?:[ \t]+-?[\d.]+(?:e[+-]\d+)?){3,}[ \t]*$",
        lammps,
    ),
    "gromacs": Program(
        {
            "nstlist": (
                "10",
                "12",
                "15",
                "18",
                "20",
                "25",
                "30",
                "35",
                "40",
                "45",
                "50",
                "60",
                "70",
                "80",
                "90",
                "100",
            ),
            "ewald": ("GMX_NBNXN_EWALD_TABLE", "GMX_NBNXN_EWALD_ANALYTICAL"),
            "pin": ("on", "off"),
        },
        r"step (\d+),",
        gromacs,
        prepare_water,
    ),
    # pw.x prints when an iteration begins, so the line marks the end of the one before.
    "pwx": Program(
        {
            "solver": ("david 2", "david 3", "david 4", "cg"),
            "mixing_beta": ("0.2", "0.3", "0.4", "0.6", "0.8"),
            "mixing_mode": ("plain", "local-TF"),
        },
        r"iteration #\s*(\d+)",
        pwx,
    ),
}


def run(command: Command, folder: Path, step: str, core: int) -> list[tuple[int, float]]:
    """Run a command; return (steps, CPU seconds so far) at each printed step, and for the end as step -1.

    Returns an empty list if the run failed.
    """
    process = subprocess.Popen(
        ["taskset", "-c", str(core), *command.argv],
        cwd=folder,
        env={**os.environ, **command.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    printed = _read_steps(process, re.compile(step, re.MULTILINE))
    found = [(steps, _seconds(process.pid)) for steps in printed]
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        return []
    return [*found, (-1, usage.ru_utime + usage.ru_stime)]


def _read_steps(process: subprocess.Popen[bytes], step: re.Pattern[str]) -> Iterator[int]:
    """Yield each step as soon as it is printed, before its line ends: gmx ends a line only with the next step."""
    assert process.stdout is not None
    text, newest = "", -1
    while data := os.read(process.stdout.fileno(), 65536):
        text = text[-200:] + data.decode(errors="replace")
        for match in step.finditer(text):
            if int(match[1]) > newest:
                newest = int(match[1])
                yield newest


def _seconds(pid: int) -> float:
    return int(Path(f"/proc/{pid}/schedstat").read_text(encoding="ascii").split()[0]) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("file", type=Path)
    parser.add_argument("--core", type=int, default=0)
    options = parser.parse_args()
    program = PROGRAMS[options.program]
    grid = program.grid()
    with tempfile.TemporaryDirectory() as name, options.file.open("w", encoding="utf-8", newline="") as file:
        program.prepare(Path(name))
        table = csv.writer(file, lineterminator="\n")
        table.writerow([*program.parameters, "steps", "cpu_s"])
        for number in np.random.default_rng(0).permutation(len(grid)):
            folder = Path(name) / str(number)
            folder.mkdir()
            command = program.command(grid[number], folder)
            for steps, seconds in run(command, folder, program.step, options.core):
                table.writerow([*grid[number].values(), steps, f"{seconds:.4f}"])
            file.flush()
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
