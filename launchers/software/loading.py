"""Load the software that a study file asks for on this machine."""

import os
import shlex
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launchers.software import build_folders, modules, spack
from launchers.software.changes import NO_CHANGES, Changes
from launchers.software.containers import RUNTIMES, Container, find_runtime, image_digest
from launchers.software.digest import file_digest
from launchers.software.query import QueryError
from launchers.software.software import LoadedSoftware, Software, SoftwareError


def load(software: Software, caller: Mapping[str, str] | None = None) -> LoadedSoftware:
    """Load software in the environment of `caller` (by default this process's), without changing it.

    Raises:
        SoftwareError: The software is not available here.
    """
    environment = dict(os.environ if caller is None else caller)
    loaded = _modules(software, environment)
    packages = _spack(software, loaded.changes.apply_to(environment))
    changes = loaded.changes.then(packages.changes)
    changes = changes.then(build_folders.folder_changes(software, changes.apply_to(environment)))
    container, image = _container(software, changes.apply_to(environment).get("PATH"))
    return LoadedSoftware(
        changes=changes,
        script=(*loaded.script, *packages.script, *build_folders.folder_script(software)),
        identity={**loaded.identity, **packages.identity, **image, **build_folders.folder_identity(software)},
        container=container,
    )


@dataclass(frozen=True)
class _Part:
    changes: Changes = NO_CHANGES
    script: tuple[str, ...] = ()
    identity: Mapping[str, str] = field(default_factory=dict)


def _modules(software: Software, environment: Mapping[str, str]) -> _Part:
    if not software.modules and not software.purge:
        return _Part()
    command = modules.module_command(environment)
    if command is None:
        msg = (
            "there is no module command on this machine: neither $LMOD_CMD nor $MODULESHOME leads to one; start "
            "autotune from a shell in which `module avail` works"
        )
        raise SoftwareError(msg)
    steps = [["purge"]] if software.purge else []
    steps += [["load", name] for name in software.modules]
    changes = NO_CHANGES
    # Unload what is loaded already: Environment Modules would load it without any change, and runs would lack its
    # variables.
    there = [] if software.purge else modules.loaded_among(software.modules, environment)
    for step in [*(["unload", name] for name in reversed(there)), *steps]:
        try:
            changes = changes.then(modules.run_module(command, step, changes.apply_to(environment)))
        except QueryError as error:
            msg = f"module {' '.join(step)}: {_first(str(error))}; `module avail` lists what there is"
            raise SoftwareError(msg) from error
    files = modules.loaded_files(changes.apply_to(environment))
    identity = {"modules": ", ".join(f"{name} {file_digest(file)}" for name, file in files.items()) or "none"}
    return _Part(changes, tuple(f"module {shlex.join(step)} || exit 1" for step in steps), identity)


def _spack(software: Software, environment: Mapping[str, str]) -> _Part:
    if not software.spack and not software.spack_environment:
        return _Part()
    program = shutil.which("spack", path=environment.get("PATH"))
    if program is None:
        msg = "there is no `spack` on the search path; source its setup-env.sh, or load its module, and start again"
        raise SoftwareError(msg)
    changes, script, identity = NO_CHANGES, list[str](), {}
    try:
        if name := software.spack_environment:
            words = ["env", "activate", "--sh", name]
            changes = spack.parse_exports(spack.run_spack(program, words, environment))
            place = spack.run_spack(program, ["location", "--env", name], environment).strip()
            identity["spack environment"] = f"{name} {file_digest(Path(place, 'spack.lock'))}"
            script += _evaluate(words)
        for spec in software.spack:
            words = ["load", "--sh", spec]
            now = changes.apply_to(environment)
            hashes = spack.run_spack(program, ["find", "--format", "{name}@{version}/{hash}", spec], now).split()
            changes = changes.then(spack.parse_exports(spack.run_spack(program, words, now)))
            identity[f"spack {spec}"] = ", ".join(hashes)
            script += _evaluate(words)
    except QueryError as error:
        msg = f"{_first(str(error))} (spack find lists what is installed)"
        raise SoftwareError(msg) from error
    return _Part(changes, tuple(script), identity)


def _evaluate(words: Sequence[str]) -> list[str]:
    # Two lines, because `eval "$(...)"` succeeds even if the command inside fails.
    return [f'loaded="$(spack {shlex.join(words)})" || exit 1', 'eval "$loaded"']


def _container(software: Software, searched: str | None) -> tuple[Container | None, dict[str, str]]:
    if not software.container:
        return None, {}
    here = find_runtime(software.runtime, searched)
    if here is None:
        known = ", ".join(runtime.name for runtime in RUNTIMES)
        wanted = f"{software.runtime} is" if software.runtime else f"none of {known} is"
        msg = f"{wanted} not on the search path, so that {software.container} cannot be started; load its module"
        raise SoftwareError(msg)
    digest = image_digest(software.container)
    if digest is None and "://" in software.container:
        msg = (
            f"{software.container} may change during the study: name its digest (...@sha256:...), or pull it "
            "into a file (apptainer pull FILE.sif ADDRESS) and name that"
        )
        raise SoftwareError(msg)
    if digest is None:
        msg = f"there is no image {software.container}; relative paths start at the study file's folder"
        raise SoftwareError(msg)
    runtime, program = here
    name = Path(software.container).name
    return Container(software.container, program, runtime), {"image": f"{name} {digest} ({runtime.name})"}


def _first(text: str) -> str:
    """Return the first paragraph of a program's complaint on one line."""
    return " ".join(text.strip().partition("\n\n")[0].split())
