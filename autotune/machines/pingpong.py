"""Measure messages between two ranks on this machine with an MPI program in C."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

from autotune.held_folders import temporary_folder
from autotune.machines.figure import Figure, best_figure, median_figure
from launchers.base import LaunchError
from launchers.job import STDERR, STDOUT, Job, Resources
from launchers.local import LocalLauncher
from launchers.mpi import MpiFlavour, MpiStart
from launchers.run import run
from launchers.software.ask import ask

SOURCE = Path(__file__).with_name("pingpong.c")
_COMPILE_PATIENCE_S = 30.0
_RUN_PATIENCE_S = 20.0
_LINE = re.compile(r"^(latency|bandwidth) ([\d.e+-]+)$", re.MULTILINE)


class PingPongError(RuntimeError):
    """Messages cannot be measured here; the text gives the reason."""


def message_figures(flavour: MpiFlavour | None, cpus: Sequence[int]) -> dict[str, Figure]:
    """Measure latency (s, of 8 bytes) and bandwidth (bytes/s, of 4 MiB) between ranks on the first two cores.

    The latency is the median of the repeats, the bandwidth the best repeat.

    Raises:
        PingPongError: the machine has a single core, there is no mpicc, no MPI start command works here, or the
            program failed.
    """
    if len(cpus) < 2:
        msg = "there is one core only"
        raise PingPongError(msg)
    if flavour is None:
        msg = "no MPI start command is known here"
        raise PingPongError(msg)
    needed = flavour.kind.allocation_variable
    if needed is not None and not os.environ.get(needed):
        msg = f"{flavour.kind.default_path} starts ranks in an allocation only: measure in a job"
        raise PingPongError(msg)
    with temporary_folder("pingpong") as folder:
        program = folder / "pingpong"
        _compile(program)
        return read_output(_run(flavour, (str(program),), folder, cpus))


def read_output(text: str) -> dict[str, Figure]:
    """Return the figures in the output of the MPI program.

    Raises:
        PingPongError: the output contains no times.
    """
    figures: dict[str, list[float]] = {"latency": [], "bandwidth": []}
    for name, value in _LINE.findall(text):
        figures[name].append(float(value))
    try:
        return {
            "mpi_latency_s": median_figure(figures["latency"]),
            "mpi_bandwidth_bytes_per_s": best_figure(figures["bandwidth"]),
        }
    except ValueError as error:
        msg = "the program of two ranks printed no times"
        raise PingPongError(msg) from error


def _compile(program: Path) -> None:
    """Compile the C program.

    Raises:
        PingPongError: there is no mpicc, or it failed.
    """
    compiler = shutil.which("mpicc")
    if compiler is None:
        msg = "there is no mpicc; load the MPI's module, or install it (apt-get install libopenmpi-dev)"
        raise PingPongError(msg)
    try:
        done = ask([compiler, "-O2", "-o", str(program), str(SOURCE)], _COMPILE_PATIENCE_S, merge=True)
    except OSError as error:
        raise PingPongError(f"{compiler} does not answer: {error.strerror or error}") from error
    if done.exit_code != 0:
        words = " ".join(done.text.split())[-300:]
        raise PingPongError(f"{compiler} cannot compile the program of two ranks: {words}".strip(": "))


def _run(flavour: MpiFlavour, argv: tuple[str, ...], folder: Path, cpus: Sequence[int]) -> str:
    job = Job(
        argv=argv,
        folder=folder,
        mpi=MpiStart(2),
        resources=Resources(cores=2, cpus=tuple(cpus[:2])),
        time_limit_s=_RUN_PATIENCE_S,
        name="pingpong",
    )
    try:
        status = run(LocalLauncher(flavour), job)
    except LaunchError as error:
        raise PingPongError(str(error)) from error
    if status.exit_code != 0:
        words = (folder / STDERR).read_text(encoding="utf-8", errors="replace").split()
        msg = f"the program of two ranks ended with {status.exit_code} ({status.reason}) {' '.join(words)[-300:]}"
        raise PingPongError(msg.strip())
    return (folder / STDOUT).read_text(encoding="utf-8", errors="replace")
