"""`autotune machine`: describe this machine or another, and measure this one."""

import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from autotune.cli.common import open_display, output, print_json
from autotune.cli.options import AsJson
from autotune.errors import StorageError
from autotune.files import replace_file

if TYPE_CHECKING:
    from autotune.machines.description import MachineDescription

_THIS = "this"


def machine(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A machine (--list), a file, or `this`.")] = _THIS,
    measure: Annotated[bool, typer.Option("--measure", help="Measure this machine, and keep the figures.")] = False,
    list_all: Annotated[bool, typer.Option("--list", help="List the described machines.")] = False,
    file: Annotated[
        Path | None,
        typer.Option("--output", metavar="FILE", help="Write the description to this TOML file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Describe a machine, or measure this one.

    Each fact has its source.
    """
    from autotune.machines.catalogue import find_machine
    from autotune.machines.description import MachineError
    from autotune.machines.description_lines import description_lines

    if list_all:
        _list(as_json)
        return
    if measure and name != _THIS:
        msg = f"--measure measures this machine, not {name!r}: run it there, and copy its --output file here"
        raise MachineError(msg)
    described = _measure() if measure else find_machine(name)
    if file is not None:
        _write(file, described)
    if as_json:
        print_json(_to_dict(described))
    elif file is None:
        for line in description_lines(described):
            output().print(line)


def _measure() -> "MachineDescription":
    from autotune.machines.benchmark import FigureBenchmark, measure
    from autotune.machines.detect import add_figures, describe
    from autotune.machines.this_machine import this_machine
    from autotune.machines.user_files import figures_file
    from launchers.detect import detect

    whole = this_machine()
    detected = describe(whole, programs=True)
    bench = FigureBenchmark(whole.cpus, Path.cwd(), detect())
    with open_display("stopped: nothing was kept, and nothing is left running") as display:
        display.line(f"measuring {whole}")
        figures = measure(detected, bench, display.line)
    described = add_figures(detected, figures)
    file = figures_file(detected.given)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, f"# autotune machine --measure on {socket.gethostname()}\n{described.to_toml()}")
    except OSError as error:
        msg = f"cannot write the figures to {file}: {error.strerror}; set XDG_CONFIG_HOME to a folder of yours"
        raise StorageError(msg) from error
    display.line(f"kept in {file}")
    return described


def _write(file: Path, described: "MachineDescription") -> None:
    from autotune.machines.catalogue import THIS
    from autotune.machines.description import MachineError
    from autotune.studyfile import NAME

    if file.exists():
        msg = f"--output {file}: the file exists, and may have been edited; remove it, or give another name"
        raise MachineError(msg)
    if described.name == THIS and re.fullmatch(NAME, file.stem):
        described = described.model_copy(update={"name": file.stem})
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file, described.to_toml())
    except OSError as error:
        msg = f"--output {file}: {error.strerror}"
        raise StorageError(msg) from error


def _list(as_json: bool) -> None:
    from rich.table import Table

    from autotune.machines.catalogue import machine_files

    machines = {name: _load_or_placeholder(file) for name, file in sorted(machine_files().items())}
    if as_json:
        print_json([{"name": name, "title": described.title} for name, described in machines.items()])
        return
    table = Table("machine", "nodes", "cores", "accelerators", "what it is")
    for name, described in machines.items():
        accelerators = f"{described.gpu.count or ''} {described.gpu.model or ''}".strip()
        table.add_row(
            name,
            str(described.nodes.count or ""),
            str(described.cpu.cores_per_node or ""),
            accelerators,
            described.title,
        )
    output().print(table)


def _load_or_placeholder(file: Path) -> "MachineDescription":
    """Load a description; return a placeholder for a file with errors, so that the list still has the others."""
    from autotune.machines.description import MachineDescription, MachineError, load

    try:
        return load(file)
    except MachineError:
        return MachineDescription(name="unreadable", title=f"{file} has errors: give its name to see them")


def _to_dict(described: "MachineDescription") -> dict[str, Any]:
    return {
        "name": described.name,
        "title": described.title,
        "facts": described.facts,
        "given": described.given,
        "sources": {path: source for path in described.given if (source := described.source(path))},
    }
