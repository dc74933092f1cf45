"""Fake installed distributions: folders on the path with the metadata of a distribution."""

import sys
from pathlib import Path

from launchers.batch_systems import registry as batch_systems
from launchers.mpi import registry as start_commands
from objectives import registry as objectives


def installed(monkeypatch, folder: Path, name: str, modules: dict[str, str], entry_points: dict[str, str]) -> None:
    """Put a distribution on the path, with the texts of its modules and a line of entry points for each group."""
    metadata = folder / f"{name}-1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("".join(f"[{g}]\n{line}\n" for g, line in entry_points.items()))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)
        monkeypatch.delitem(sys.modules, module, raising=False)
    monkeypatch.syspath_prepend(folder)
    forget()


def forget() -> None:
    """Clear the caches of entry points."""
    start_commands.start_commands.cache_clear()
    batch_systems._others.cache_clear()
    batch_systems._load.cache_clear()
    objectives._others.cache_clear()
