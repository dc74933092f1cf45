"""Environment modules, of Lmod and of Environment Modules, without a shell.

Both print the changes of a `module load` as statements of Python (`modulecmd python load NAME`), which are parsed here,
not run. Sources: https://lmod.readthedocs.io, https://modules.readthedocs.io/en/stable/module.html.
"""

import ast
import os
import shutil
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path

from launchers.software.changes import Changes
from launchers.software.query import run_query

# A module may contact a licence server or lie on a slow file system.
_PATIENCE_S = 60.0
_TCL = ("libexec/modulecmd.tcl", "modulecmd.tcl")
_DEBIAN = ("/usr/lib/*/modulecmd.tcl", "/usr/lib*/modulecmd.tcl", "/usr/share/Modules/libexec/modulecmd.tcl")


def module_command(environment: Mapping[str, str]) -> list[str] | None:
    """Return the command line behind `module` here; None if this machine has no modules."""
    if (lmod := environment.get("LMOD_CMD")) and Path(lmod).is_file():
        return [lmod]
    home = environment.get("MODULESHOME")
    places = [Path(home, name) for name in _TCL] if home else []
    places += [path for pattern in _DEBIAN for path in sorted(Path("/").glob(pattern.lstrip("/")))]
    for path in places:
        if path.is_file() and (tclsh := shutil.which("tclsh") or shutil.which("tclsh8.6")):
            return [tclsh, os.fspath(path)]
    lmod_here = Path("/usr/share/lmod/lmod/libexec/lmod")
    return [os.fspath(lmod_here)] if lmod_here.is_file() else None


def loaded_among(names: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """Return those of the modules that are loaded in an environment, with or without a version in their names."""
    there = environment.get("LOADEDMODULES", "").split(":")
    return [name for name in names if any(one == name or one.startswith(f"{name}/") for one in there)]


def run_module(command: Sequence[str], arguments: Sequence[str], environment: Mapping[str, str]) -> Changes:
    """Return the changes that `module ARGUMENTS` makes in an environment.

    Raises:
        QueryError: The command failed or did not answer.
    """
    reply = run_query([*command, "python", *arguments], f"module {' '.join(arguments)}", environment, _PATIENCE_S)
    changes = parse_statements(reply.text)
    if changes is None or reply.exit_code != 0:
        raise reply.error
    return changes


def parse_statements(text: str) -> Changes | None:
    """Parse the statements that a module command prints; None if they report a failure or are not statements."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a value may contain an unescaped backslash
        try:
            body = ast.parse(text).body
        except (SyntaxError, ValueError, MemoryError, RecursionError):  # the last three occur if nested too deeply
            return None
    variables: dict[str, str] = {}
    unset: set[str] = set()
    for statement in body:
        match statement:
            case ast.Assign(
                targets=[ast.Subscript(slice=ast.Constant(value=str(name)))], value=ast.Constant(str(value))
            ):
                variables[name] = value
                unset.discard(name)
            case ast.Delete(targets=[ast.Subscript(slice=ast.Constant(value=str(name)))]):
                variables.pop(name, None)
                unset.add(name)
            case ast.Assign(targets=[ast.Name(id="_mlstatus")], value=ast.Constant(value=False)):
                return None
            case _:
                continue  # import os, aliases, messages
    return Changes(variables, frozenset(unset))


def loaded_files(environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the files of the modules loaded in an environment, by module name."""
    names = environment.get("LOADEDMODULES", "").split(":")
    files = environment.get("_LMFILES_", "").split(":")
    return {name: Path(file) for name, file in zip(names, files, strict=False) if name and file}
