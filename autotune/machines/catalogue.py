"""Machines by name: shipped descriptions, the user's own, files, and this machine."""

import importlib.resources
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib.resources.abc import Traversable
from pathlib import Path

from autotune.machines.description import MachineDescription, MachineError, load
from autotune.machines.detect import this_description
from autotune.machines.identity import config_folder
from autotune.machines.printed_names import card_called
from spaces.parameters.errors import did_you_mean

THIS = "this"
"""The name of the machine that the process runs on."""


def machine_files() -> dict[str, Path]:
    """Return the described machines: name -> file. A user's own wins over a shipped one with the same name."""
    shipped = importlib.resources.files("studies") / "machines"
    return _files(shipped) | _files(config_folder() / "machines")


def find_machine(name_or_path: str) -> MachineDescription:
    """Return a machine by name (`gadi`), by the path of its description (`./mine.toml`), or `this` one.

    An accelerator may have the name that programs print: `NVIDIA A100-PCIE-40GB`.

    This machine has the figures that were measured on a machine like it, if there are any.

    Raises:
        MachineError: there is no such machine, or its description has errors.
    """
    if name_or_path == THIS:
        return this_description()
    known = machine_files()
    if name_or_path in known:
        return load(known[name_or_path])
    path = Path(name_or_path)
    if path.suffix == ".toml" or "/" in name_or_path:
        return load(path)
    if (card := card_called(name_or_path, _readable(known))) is not None:
        return card
    names = [*sorted(known), THIS]
    msg = (
        f"no machine is called {name_or_path!r}{did_you_mean(name_or_path, names)}; known: {', '.join(names)}; "
        f"a description of your own is given by its path, ./{name_or_path}.toml, "
        f"or goes into {config_folder()}/machines"
    )
    raise MachineError(msg)


def _readable(files: Mapping[str, Path]) -> Iterator[MachineDescription]:
    for path in files.values():
        with suppress(MachineError):
            yield load(path)


def _files(folder: Traversable) -> dict[str, Path]:
    try:
        files = [Path(str(entry)) for entry in folder.iterdir()]
    except OSError:
        return {}
    return {file.stem: file for file in files if file.suffix == ".toml"}
