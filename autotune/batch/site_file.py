"""The site file: the settings that a cluster's users would otherwise write at the top of every job script."""

import importlib.resources
import os
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationInfo, field_validator

from autotune.durations import parse_duration_s
from autotune.errors import AutotuneError, CannotRunHereError
from autotune.machines.catalogue import find_machine
from autotune.machines.description import MachineDescription, MachineError
from autotune.machines.facts import Facts
from autotune.machines.this_machine import Machine
from autotune.machines.user_files import config_folder
from autotune.studyfile import NAME
from autotune.studyfile.one_of import OneOf
from autotune.tomlfiles import reading as tomlfiles
from launchers.batch_systems.registry import find_batch_system, names
from launchers.mpi import MpiFlavour, start_commands
from launchers.mpi.open_mpi import OPEN_MPI
from launchers.site import Site
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem

_LONGEST_S = 366 * 86400.0
_LONGEST_PAUSE_S = 86400.0
_MOST_MEMORY_GIB = 2.0**20
Line = Annotated[str, Field(pattern=r"^[^\n\r\x00]+$")]
Word = Annotated[str, Field(pattern=r"^[^\s\x00]+$")]

ChunkWord = Annotated[str, Field(pattern=r"^[A-Za-z]\w*=[^\s:+]+$")]
_SIZES = ("ncpus=", "mpiprocs=", "ngpus=", "mem=")


class SiteError(AutotuneError):
    """A site is unknown, or its file has errors: the message lists all of them, each with its path."""


def as_tuple(value: object) -> object:
    """Return a list as a tuple; refuse a single word, which would become a tuple of its letters."""
    if isinstance(value, str):
        msg = f'must be a list: ["{value}"]'
        raise ValueError(msg)  # noqa: TRY004  pydantic collects these
    return tuple(value) if isinstance(value, list) else value


class ProgramSection(BaseModel):
    """Settings that a single program needs at a site, in addition to those of every job."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    licences: tuple[Word, ...] = ()
    modules: tuple[Word, ...] = ()
    setup: tuple[Line, ...] = ()

    @field_validator("licences", "modules", "setup", mode="before")
    @classmethod
    def _to_tuple(cls, value: object) -> object:
        return as_tuple(value)


class SiteFile(BaseModel):
    """The settings of a site; `launchers.site.Site` explains most of them.

    The key `base` names another site, whose settings apply unless this file has its own.

    Attributes:
        machine: The description of its nodes, as for `autotune machine`.
        nodes: The most nodes that a job gets.
        workers: The default number of runs side by side.
        mpi: The MPI that starts ranks, such as `Open MPI 4.1.2`.
        start: The command that starts ranks.
        programs: Settings for single programs, by the objective of a study or by the name of the file that a command
            starts. They are kept out of the jobs of other programs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str = Field(pattern=NAME)
    scheduler: Annotated[str, OneOf(names)]
    machine: str
    nodes: int = Field(default=1, ge=1)
    account: Word | None = None
    needs_account: bool = False
    queue: Word | None = None
    qos: Word | None = None
    gres: Annotated[str, Field(pattern=r"^[^\s\x00,]+$")] | None = None
    account_name: Word | None = None
    group: Word | None = None
    licences: tuple[Word, ...] = ()
    directives: tuple[Line, ...] = ()
    modules: tuple[Word, ...] = ()
    setup: tuple[Line, ...] = ()
    memory_per_node_gib: float | None = Field(default=None, gt=0, le=_MOST_MEMORY_GIB, allow_inf_nan=False)
    walltime: str = "1h"
    exclusive: bool = False
    workers: int = Field(default=4, ge=1)
    max_jobs: int = Field(default=100, ge=1)
    submissions_per_minute: int | None = Field(default=None, ge=1)
    poll_s: float = Field(default=30.0, gt=0, le=_LONGEST_PAUSE_S, allow_inf_nan=False)
    energy: bool = False
    mpi: str = "Open MPI"
    start: Word | None = None
    python: Word | None = None
    by_chunks: bool = True
    chunk: tuple[ChunkWord, ...] = ()
    programs: dict[str, ProgramSection] = Field(default_factory=dict)

    @field_validator("licences", "directives", "modules", "setup", "chunk", mode="before")
    @classmethod
    def _to_tuple(cls, value: object) -> object:
        return as_tuple(value)

    @field_validator("qos", "account_name", "group", "chunk", "energy")
    @classmethod
    def _check_setting(cls, value: object, info: ValidationInfo) -> object:
        if value is not False and (instead := unknown_setting(info.data.get("scheduler", ""), info.field_name or "")):
            raise ValueError(instead)
        return value

    @field_validator("chunk")
    @classmethod
    def _check_chunk(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if sizes := [word for word in value if word.startswith(_SIZES)]:
            msg = f"{', '.join(sizes)}: each run sets its own size; give the kind of node only, such as model=NAME"
            raise ValueError(msg)
        if value and not info.data.get("by_chunks", True):
            msg = "by_chunks = false requests totals, which have no chunks; remove by_chunks, or chunk"
            raise ValueError(msg)
        return value

    @field_validator("directives")
    @classmethod
    def _check_directives(cls, value: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        reasons = [
            reason for directive in value if (reason := reserved_reason(info.data.get("scheduler", ""), directive))
        ]
        if reasons:
            raise ValueError("; ".join(reasons))
        return value

    @field_validator("walltime")
    @classmethod
    def _check_walltime(cls, value: str) -> str:
        try:
            seconds = parse_duration_s(value)
        except ValueError:
            seconds = 0.0
        if not 0 < seconds <= _LONGEST_S:
            msg = "must be a duration such as 90m or 2h30m, at most a year"
            raise ValueError(msg)
        return value

    @field_validator("mpi")
    @classmethod
    def _check_mpi(cls, value: str) -> str:
        if _flavour(value, None) is None:
            kinds = ", ".join(map(str, start_commands()))
            msg = f"must be one of {kinds}, optionally with a version (Open MPI 4.1.2)"
            raise ValueError(msg)
        return value


class Cluster(NamedTuple):
    """A site with the description of its nodes.

    Attributes:
        workers: The default number of runs side by side.
    """

    site: Site
    description: MachineDescription
    workers: int

    @property
    def machine(self) -> Machine:
        """The largest set of nodes that a run gets."""
        cpu = self.description.cpu
        return Machine(
            host=self.site.name,
            cpu_model=cpu.model or "unknown processor",
            microarchitecture=cpu.microarchitecture or "unknown",
            cpus=tuple(range(self.site.cores_per_node)),
            sockets=cpu.sockets or 1,
            memory_bytes=self.site.memory_bytes or self.description.memory.bytes or 0,
            system=self.description.software.system or "",
            nodes=self.site.nodes,
        )

    @property
    def facts(self) -> Facts:
        """The facts of these nodes."""
        return self.description.for_nodes(self.site.nodes)


def user_file() -> Path:
    """Return the file that describes the user's own site."""
    return config_folder() / "site.toml"


def site_files() -> dict[str, Path]:
    """Return the files of the shipped sites, by name."""
    return tomlfiles.toml_files(importlib.resources.files("studies") / "sites")


def program_names(study: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names under which a site file may list the program of a study: its objective, the file it starts."""
    command = (study.get("options") or {}).get("argv") or ()
    return (str(study.get("objective", "")), *(os.path.basename(str(word)) for word in command[:1]))  # noqa: PTH119


PROJECT = "PROJECT"
"""The word in a script for an account that its user must fill in."""


def with_account(site: Site, account: str | None = None) -> Site:
    """Return a site with an account; with a placeholder if the site needs an account and none is known."""
    return replace(site, account=account or site.account or (PROJECT if site.needs_account else ""))


def find_cluster(name_or_path: str | None, scheduler: str | None = None, *, programs: Collection[str] = ()) -> Cluster:
    """Return a site by the path of its file or by the name of a shipped site; without either, the user's own.

    Args:
        name_or_path: The site.
        scheduler: The batch system that the site must have, if any.
        programs: The names of the program whose settings are included.

    Raises:
        SiteError: the site is unknown, its file has errors, or it has another batch system.
        CannotRunHereError: neither a site nor the user's own file is given.
    """
    path = _path(name_or_path)
    cluster = _cluster(tomlfiles.validate(_table(path, ()), SiteFile, str(path), SiteError), path, programs)
    if scheduler is not None and cluster.site.scheduler != scheduler:
        has = f"site {cluster.site.name!r} ({path}) has {cluster.site.scheduler}"
        msg = f"{has}, but {scheduler} is requested; leave --launcher out, or give another --site"
        raise SiteError(msg)
    return cluster


def own_cluster(scheduler: str, *, programs: Collection[str] = ()) -> Cluster | None:
    """Return the user's own site, with settings of the program; None unless it has this batch system.

    Raises:
        SiteError: its file has errors.
    """
    if not user_file().is_file():
        return None
    cluster = find_cluster(None, programs=programs)
    return cluster if cluster.site.scheduler == scheduler else None


def absolute_site(name_or_path: str) -> str:
    """Return a name of the site that is valid in every folder: that of a shipped site, or the full path of a file."""
    path = Path(name_or_path).expanduser()
    return os.fspath(path.absolute()) if _is_file_of(name_or_path) else name_or_path


def _is_file_of(name_or_path: str) -> bool:
    """Return whether this is the path of a file rather than the name of a shipped site."""
    return name_or_path not in site_files() and (name_or_path.endswith(".toml") or "/" in name_or_path)


def _path(name_or_path: str | None, beside: Path | None = None) -> Path:
    """Return the file of a site; with `beside`, a path is relative to the folder of that file."""
    known = site_files()
    if "\0" in (name_or_path or ""):
        msg = f"{name_or_path!r} is not a file name: it contains a NUL"
        raise SiteError(msg)
    if name_or_path is None:
        if user_file().is_file():
            return user_file()
        msg = (
            f'a batch system needs a site file; write {user_file()} (`base = "slurm"` and your account and queue), '
            f"or give one with --site; shipped as examples: {', '.join(known)}"
        )
        raise CannotRunHereError(msg)
    if name_or_path in known:
        return known[name_or_path]
    if _is_file_of(name_or_path):
        path = Path(name_or_path).expanduser()
        return path if beside is None else beside.parent / path
    msg = (
        f"no site is called {name_or_path!r}{did_you_mean(name_or_path, known)}; known: {', '.join(known)}; "
        f"give a file of your own by its path, ./{name_or_path}.toml"
    )
    raise SiteError(msg)


def _table(path: Path, above: tuple[Path, ...]) -> dict[str, Any]:
    """Return the table of a file, completed with that of its base."""
    table = tomlfiles.read(path, "site file", SiteError)
    base = table.pop("base", None)
    if base is None:
        return {"name": _name(path), **table}
    below = _path(str(base), path)
    if below.resolve() in {known.resolve() for known in (path, *above)}:
        raise SiteError(Problem(f"{path}: it is its own base, by way of {below}", "base"))
    name = {} if path == user_file() else {"name": _name(path)}
    inherited = _table(below, (path, *above))
    if isinstance(table.get("programs"), dict):
        table["programs"] = {**inherited.get("programs", {}), **table["programs"]}
    return {**inherited, **name, **table}


def _name(path: Path) -> str:
    """Return the stem of a file name, restricted to the characters that the name of a study or job may have."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", path.stem).strip("._-") or "site"


def _cluster(file: SiteFile, path: Path, programs: Collection[str]) -> Cluster:
    try:
        machine = find_machine(file.machine)
        machine.for_nodes(file.nodes)
    except MachineError as error:
        raise SiteError(Problem(f"{path}: {error}", "machine")) from error
    cores = machine.cpu.cores_per_node
    # The memory of a node is more than a job may request: the operating system needs a part.
    memory = None if file.memory_per_node_gib is None else int(file.memory_per_node_gib * 2**30)
    if cores is None or (memory or machine.memory.bytes) is None:
        missing = "its cores (cpu.cores_per_node)" if cores is None else "its memory (or give memory_per_node_gib)"
        raise SiteError(Problem(f"{path}: the description of {file.machine!r} does not say {missing}", "machine"))
    needed = [section for name, section in file.programs.items() if name in programs]
    site = Site(
        scheduler=file.scheduler,
        name=file.name,
        account=file.account or "",
        queue=file.queue or "",
        qos=file.qos or "",
        gres=file.gres or "",
        account_name=file.account_name or "",
        group=file.group or "",
        chunk=file.chunk,
        needs_account=file.needs_account,
        knows_program=bool(needed) or not programs,
        licences=(*file.licences, *(word for section in needed for word in section.licences)),
        directives=file.directives,
        modules=(*file.modules, *(word for section in needed for word in section.modules)),
        setup=(*file.setup, *(line for section in needed for line in section.setup)),
        nodes=file.nodes,
        cores_per_node=cores,
        gpus_per_node=machine.gpu.count or 0,
        memory_bytes=memory,
        walltime_s=parse_duration_s(file.walltime),
        exclusive=file.exclusive,
        max_jobs=file.max_jobs,
        submissions_per_minute=file.submissions_per_minute,
        poll_s=file.poll_s,
        energy=file.energy,
        mpi=_flavour(file.mpi, file.start) or MpiFlavour(OPEN_MPI),
        by_chunks=file.by_chunks,
        **({"python": os.path.expanduser(file.python)} if file.python else {}),  # noqa: PTH111  a word for another machine
    )
    return Cluster(site, machine, min(file.workers, file.max_jobs))


def _flavour(text: str, start: str | None) -> MpiFlavour | None:
    for kind in start_commands():
        name, _, version = text.partition(kind.name)
        if name == "" and re.fullmatch(r"(\s+\d+(\.\d+)*)?", version):
            numbers = tuple(int(part) for part in version.split(".")) if version.strip() else ()
            return MpiFlavour(kind, numbers, start or kind.default_path)
    return None


def reserved_reason(scheduler: str, directive: str) -> str | None:
    """Return why a line for the scheduler (without its `#SBATCH` or `#PBS`) is not allowed; None if it is."""
    reasons = find_batch_system(scheduler).reserved(directive) if scheduler in names() else {}
    return "; ".join(f"{option}: {reason}" for option, reason in reasons.items()) or None


def unknown_setting(scheduler: str, setting: str) -> str | None:
    """Return a replacement for a setting that a batch system does not know; None if it knows the setting."""
    if scheduler not in names():
        return None
    system = find_batch_system(scheduler)
    if setting == "energy" and system.scheduler.energy is None:
        return f"energy is read only from the accounting of Slurm, not of {system.name}; use a command in [meter]"
    return system.unsupported_settings.get(setting)
