"""Shell completion of study names and study files.

A completion must be quick and must not fail: it proposes nothing if a storage or a folder cannot be read.
"""

from contextlib import suppress
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

import typer

from autotune.storage import address

_TOML = ".toml"


def study_names(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the names of studies in the command line's storage that begin with `incomplete`."""
    with suppress(Exception):
        from autotune.storage.tables import stored_names

        names = stored_names(address.storage_url(ctx.params.get("storage") or address.DEFAULT))
        return [name for name in names if name.startswith(incomplete) and name.isprintable()]
    return []


def study_files(incomplete: str) -> list[str]:
    """Return the shipped studies and the study files in the folder that begin with `incomplete`."""
    return _files(files("studies"), incomplete)


def any_studies(ctx: typer.Context, incomplete: str) -> list[str]:
    """Return the stored studies, the shipped ones and the study files that begin with `incomplete`."""
    return [*study_names(ctx, incomplete), *study_files(incomplete)]


def reference_files(incomplete: str) -> list[str]:
    """Return the shipped reference figures and the TOML files in the folder that begin with `incomplete`."""
    return _files(files("studies") / "references", incomplete)


def _files(shipped_in: Traversable, incomplete: str) -> list[str]:
    with suppress(Exception):
        shipped = sorted(entry.name.removesuffix(_TOML) for entry in shipped_in.iterdir() if _is_toml(entry.name))
        folder, slash, _ = incomplete.rpartition("/")
        there = Path(folder + slash).expanduser().iterdir()
        own = sorted(f"{folder}{slash}{path.name}" for path in there if _is_toml(path.name) and path.is_file())
        return [name for name in (*shipped, *own) if name.startswith(incomplete) and name.isprintable()]
    return []


def _is_toml(name: str) -> bool:
    return name.endswith(_TOML) and not name.startswith(".")
