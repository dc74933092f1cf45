"""Removal: what commands say of folders that go, and how they ask before."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.common import errors

if TYPE_CHECKING:
    from autotune.coordination.upkeep import Removable

YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask. Needed where nobody can be asked.")]


def ask(question: str, *, yes: bool) -> None:
    """Ask whether what cannot be undone is to be done; with `yes` that is known.

    Raises:
        BadParameter: nobody can be asked.
        Exit: the user does not agree.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        msg = "nobody can be asked here: the same command with --yes does it without"
        raise typer.BadParameter(msg, param_hint="--yes")
    if not typer.confirm(question, err=True):
        errors().print("nothing was changed")
        raise typer.Exit(1)


def folders_text(found: "Removable") -> str:
    """Say how many folders go, where they are, and how large they are."""
    if found.elsewhere:
        return f"0 folders of runs (they belong to {found.elsewhere})"
    around = {folder.parent for folder in found.folders}
    where = f" in {_near(next(iter(around)))}" if len(around) == 1 else ""
    return f"{count_text(len(found.folders))} of runs{where} ({found.size_bytes / 1e6:.1f} MB)"


def count_text(number: int) -> str:
    """Say how many folders there are."""
    return "1 folder" if number == 1 else f"{number} folders"


def _near(folder: Path) -> Path:
    here = Path.cwd()
    return folder.relative_to(here) if folder.is_relative_to(here) else folder
