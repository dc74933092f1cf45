"""Builds without a module or a package: folders of programs and libraries, and variables."""

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from launchers.software.changes import Changes
from launchers.software.digest import file_digest, text_digest
from launchers.software.software import Software, SoftwareError

_MOST_BYTES = 256 * 2**20
_FOLDERS = {"PATH": "programs", "LD_LIBRARY_PATH": "libraries"}


def folder_changes(software: Software, environment: Mapping[str, str]) -> Changes:
    """Return the changes that put a build's folders first on the search paths and set its variables.

    Raises:
        SoftwareError: A folder does not exist.
    """
    changed = {}
    for name, folders in _folders(software).items():
        for folder in folders:
            if not Path(folder).is_dir():
                msg = (
                    f"there is no folder {folder} of {_FOLDERS[name]}; relative paths start at the study file's folder"
                )
                raise SoftwareError(msg)
        changed[name] = os.pathsep.join([*folders, *filter(None, [environment.get(name)])])
    return Changes(changed | dict(software.variables))


def folder_script(software: Software) -> tuple[str, ...]:
    """Return the lines of a job script that make the same changes."""
    searched = (
        f"export {name}={shlex.quote(os.pathsep.join(folders))}${{{name}:+:${name}}}"
        for name, folders in _folders(software).items()
    )
    return (*searched, *(f"export {name}={shlex.quote(value)}" for name, value in software.variables.items()))


def folder_identity(software: Software) -> dict[str, str]:
    """Return what distinguishes the build from others, apart from the contents of its programs."""
    identity = {_FOLDERS[name]: os.pathsep.join(folders) for name, folders in _folders(software).items()}
    if software.libraries:
        identity["library files"] = text_digest("\n".join(map(_contents, software.libraries)))
    return identity | dict(sorted(software.variables.items()))


def _contents(folder: str) -> str:
    """Return the digests of a folder's shared libraries; only their sizes if they are many or large."""
    files = sorted({file.resolve() for file in Path(folder).glob("*.so*") if file.is_file()})
    sizes = {file: file.stat().st_size for file in files}
    is_small = sum(sizes.values()) <= _MOST_BYTES
    return "\n".join(f"{file.name} {file_digest(file) if is_small else size}" for file, size in sizes.items())


def _folders(software: Software) -> dict[str, tuple[str, ...]]:
    wanted = {"PATH": software.programs, "LD_LIBRARY_PATH": software.libraries}
    return {name: folders for name, folders in wanted.items() if folders}
