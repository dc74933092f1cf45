"""`autotune doctor`: list what is installed, what is missing, and how to install it."""

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.batch.launcher_names import LOCAL
from autotune.cli.common import duration_s, output, print_json
from autotune.cli.options import AsJson, YesOption
from autotune.cli.placement import LauncherOption, SiteOption
from autotune.errors import ExitCode
from autotune.held_folders import TEMPORARY, abandoned_folders
from launchers.meters.available import find_meters
from launchers.shared_memory import find_abandoned
from launchers.software.ask import ask
from objectives import blas as blas_libraries
from objectives.kind import Program
from objectives.registry import OBJECTIVES

if TYPE_CHECKING:
    from rich.table import Table

_SHOWN = 3
_LIBRARIES = ("optuna", "ray", "numpy", "scipy", "pandas", "pydantic")


_TOOLS = (
    Program(
        "mpirun",
        "programs with several ranks",
        "openmpi-bin",
        "module load openmpi",
        ("mpirun", "--version"),
        needed=True,
    ),
    Program("sbatch", "Slurm job scripts", "slurm-client", "run on a login node", ("sbatch", "--version")),
    Program("qsub", "PBS job scripts", "", "run on a login node"),
)

PROGRAMS = sorted(
    (*(program for kind in OBJECTIVES.values() for program in kind.programs), *_TOOLS),
    key=lambda program: not program.needed,
)
"""The programs to look for, needed ones first."""


@dataclass(frozen=True)
class Finding:
    """A program on this host: its path, None if it is missing, and the version that it reports."""

    program: Program
    path: str | None
    version: str = ""

    @property
    def advice(self) -> str:
        """How to install the program; empty if it was found."""
        if self.path is not None:
            return ""
        install = f"apt-get install {self.program.package}, or " if self.program.package else ""
        return f"{install}{self.program.otherwise}"


def find_program(program: Program, which: Callable[[str], str | None] = shutil.which) -> Finding:
    """Look for a program on PATH, and run it to get its version."""
    path = which(program.name)
    if path is None or not program.version_argv:
        return Finding(program, path)
    try:
        printed = ask(program.version_argv, 20).text
    except OSError:
        return Finding(program, path, "does not answer")
    return Finding(program, path, next(iter(printed.splitlines()), ""))


def _blas_names() -> list[str]:
    paths = [path for program in PROGRAMS if program.links_blas and (path := shutil.which(program.name))]
    return [library.name for path in paths for library in blas_libraries.find(Path(path))]


def _version(library: str) -> str | None:
    """Return the version of an installed library; None if this installation does without it."""
    try:
        return version(library)
    except PackageNotFoundError:
        return None


def doctor(
    launcher: LauncherOption = None,
    site: SiteOption = None,
    queue: Annotated[str | None, typer.Option("--queue", help="Submit the jobs to this queue or partition.")] = None,
    account: Annotated[str | None, typer.Option("--account", help="Charge the jobs to this project.")] = None,
    wait: Annotated[str, typer.Option("--wait", metavar="DURATION", help="Cancel the jobs after this time.")] = "10m",
    write: Annotated[Path | None, typer.Option("--write", metavar="FILE", help="Write a site file.")] = None,
    yes: YesOption = False,
    as_json: AsJson = False,
) -> None:
    """List what is installed here, and what is missing.

    With --launcher or --site it asks, submits three small jobs, and reports how the batch system works.
    Exit code 3: a needed program is missing, or no job has run.
    """
    if launcher not in {None, LOCAL} or site is not None:
        from autotune.cli.site_doctor import probe_site

        wait_s = duration_s(wait, "--wait")
        probe_site(launcher, site, {"queue": queue, "account": account}, wait_s, write, yes=yes, as_json=as_json)
        return
    for option, value in (("--queue", queue), ("--account", account), ("--write", write)):
        if value is not None:
            msg = "is for the jobs of a batch system: name the system with --launcher"
            raise typer.BadParameter(msg, param_hint=option)
    from autotune.machines.this_machine import this_machine

    machine = this_machine()
    findings = [find_program(program) for program in PROGRAMS]
    blas = _blas_names()
    libraries = {name: _version(name) for name in _LIBRARIES}
    meters = find_meters()
    warnings = _warnings()
    missing = [finding for finding in findings if finding.path is None and finding.program.needed]
    if as_json:
        print_json(
            {
                "machine": machine.describe(),
                "programs": {f.program.name: {"path": f.path, "version": f.version} for f in findings},
                "blas": blas,
                "libraries": libraries,
                "meters": {meter.name: {"found": meter.found, "why_not": meter.why} for meter in meters},
                "warnings": warnings,
                "missing": {f.program.name: f.advice for f in missing},
            }
        )
    else:
        output().print(f"machine: {machine}")
        output().print(f"BLAS libraries to choose from: {', '.join(blas) or 'only the linked one'}")
        output().print("libraries: " + ", ".join(f"{n} {v or '(missing)'}" for n, v in libraries.items()))
        for meter in meters:
            output().print(f"meter: {meter}")
        output().print(_table(findings))
        for warning in warnings:
            output().print(f"warning: {warning}", style="yellow")
    if missing:
        raise typer.Exit(ExitCode.CANNOT_RUN_HERE)


def _warnings() -> list[str]:
    """Return problems of this host other than missing programs."""
    from autotune.execution.ray_access import find_exposed_token

    token = find_exposed_token()
    danger = "with it they can run programs as you through any Ray of yours that uses it (autotune's does not)"
    return [*([f"other users can read {token}: {danger}; chmod 600 {token}"] if token else []), *_leftovers()]


def _leftovers() -> list[str]:
    """Return a warning for each kind of unused file, segment or folder that your killed programs left on this host."""
    files, segments = find_abandoned()
    temporary = Path(tempfile.gettempdir())
    folders = [str(folder) for folder in abandoned_folders(temporary, TEMPORARY)]
    size = sum(Path(file).stat().st_size for file in files if Path(file).exists())
    kinds = (
        (f"files in /dev/shm, {size / 2**20:.1f} MiB", files, "rm"),
        ("System V segments", [str(segment) for segment in segments], "ipcrm -m"),
        ("folders of killed sessions", folders, "rm -r"),
    )
    return [
        f"{what} that no process uses: {_some(names)}; if you do not need them: {remove} ..."
        for what, names, remove in kinds
        if names
    ]


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"{', '.join(names[:_SHOWN])}{more}"


def _table(findings: list[Finding]) -> "Table":
    from rich.table import Table

    table = Table("program", "for", "found", "if it is missing")
    for finding in findings:
        location = f"{finding.path} {finding.version}".strip() if finding.path else "missing"
        style = "red" if finding.path is None and finding.program.needed else ""
        cells = (finding.program.name, finding.program.purpose, location, finding.advice)
        table.add_row(*cells, style=style)
    return table
