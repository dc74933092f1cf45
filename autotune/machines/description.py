"""The description of a machine: hardware and software of its nodes, as TOML.

Only the name is required: an unknown fact is left out, never guessed.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from autotune.errors import AutotuneError
from autotune.machines.facts import Facts, flat_facts
from autotune.studyfile import NAME
from autotune.tomlfiles import reading as tomlfiles
from autotune.tomlfiles import writing as tomltext
from spaces.parameters.errors import did_you_mean
from spaces.parameters.problem import Problem

Count = Annotated[int, Field(ge=1)]
Bytes = Annotated[int, Field(ge=1)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1)]


class MachineError(AutotuneError):
    """A machine is unknown, or its description has errors: the message lists all of them, each with its path."""


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Nodes(_Section):
    """The machine as a whole.

    Attributes:
        count: How many nodes of this kind it has.
        scheduler: Its batch system: `pbs`, `slurm`, ...
    """

    count: Count | None = None
    scheduler: Word | None = None


class Cpu(_Section):
    """The processors of one node.

    Attributes:
        microarchitecture: A name that archspec knows.
        cores_per_node: The physical cores that a job may use.
        flops: The double-precision peak of all sockets, per second.
        cache_bytes: The last-level caches of all sockets together.
    """

    vendor: Word | None = None
    model: Word | None = None
    architecture: Word | None = None
    microarchitecture: Word | None = None
    sockets: Count | None = None
    cores_per_node: Count | None = None
    threads_per_core: Count | None = None
    frequency_hz: Rate | None = None
    vector_bits: Count | None = None
    flops: Rate | None = None
    cache_bytes: Bytes | None = None


class Memory(_Section):
    """The main memory of one node."""

    bytes: Bytes | None = None
    bandwidth_bytes_per_s: Rate | None = None


class Gpu(_Section):
    """The accelerators of one node.

    Attributes:
        count: How many of them a node has. All other fields describe a single one.
        flops_fp16: The half-precision peak of the matrix units, without sparsity, per second.
        flops_fp32: The single-precision peak without matrix units, per second.
        flops_fp64: The double-precision peak without matrix units, per second.
        lanes: How many threads execute in lockstep (a warp or wavefront).
        shared_memory_bytes: The shared memory of one compute unit.
        registers: The 32-bit registers of one compute unit.
    """

    count: Count | None = None
    vendor: Word | None = None
    model: Word | None = None
    architecture: Word | None = None
    memory_bytes: Bytes | None = None
    bandwidth_bytes_per_s: Rate | None = None
    flops_fp16: Rate | None = None
    flops_fp32: Rate | None = None
    flops_fp64: Rate | None = None
    compute_units: Count | None = None
    lanes: Count | None = None
    l2_bytes: Bytes | None = None
    shared_memory_bytes: Bytes | None = None
    registers: Count | None = None


class Network(_Section):
    """The network between the nodes: bandwidth and latency of one node, in one direction."""

    name: Word | None = None
    bandwidth_bytes_per_s: Rate | None = None
    latency_s: Seconds | None = None


class Disk(_Section):
    """The file system that runs write to, or the disk of a node."""

    name: Word | None = None
    write_bytes_per_s: Rate | None = None
    read_bytes_per_s: Rate | None = None


class Software(_Section):
    """The software that builds and starts programs."""

    system: Word | None = None
    mpi: Word | None = None
    blas: Word | None = None
    compiler: Word | None = None


class MeasuredFigures(_Section):
    """The figures that `autotune machine --measure` measured on one node.

    Rates without `core` in their names are those of all cores together. Messages pass between two ranks on this node.

    Attributes:
        at: When the figures were measured, in ISO 8601.
        blas: The library that the floating-point rates are measured with.
        load_1m: The mean number of runnable processes in the minute before.
        spread: By figure, the spread of its repeats: (greatest - least) / median.
        notes: Remarks, and the figures that could not be measured with the reasons.
    """

    at: Word | None = None
    blas: Word | None = None
    load_1m: Share | None = None
    memory_bandwidth_core_bytes_per_s: Rate | None = None
    memory_bandwidth_bytes_per_s: Rate | None = None
    blas_flops_core: Rate | None = None
    blas_flops: Rate | None = None
    mpi_latency_s: Seconds | None = None
    mpi_bandwidth_bytes_per_s: Rate | None = None
    disk_write_bytes_per_s: Rate | None = None
    disk_read_bytes_per_s: Rate | None = None
    memory_bandwidth_by_cores: dict[str, Rate] | None = None
    blas_flops_by_cores: dict[str, Rate] | None = None
    spread: dict[str, Share] | None = None
    notes: list[Word] | None = None


class MachineDescription(_Section):
    """A machine.

    Attributes:
        sources: By path of a fact or a section, where it comes from: a page, or how it was detected.
    """

    name: str = Field(pattern=NAME)
    title: str = ""
    nodes: Nodes = Nodes()
    cpu: Cpu = Cpu()
    memory: Memory = Memory()
    gpu: Gpu = Gpu()
    network: Network = Network()
    disk: Disk = Disk()
    software: Software = Software()
    measured: MeasuredFigures = MeasuredFigures()
    sources: dict[str, Word] = Field(default_factory=dict)

    @property
    def facts(self) -> Facts:
        """The facts of one node, by the names that `docs/machines.md` lists."""
        return self.for_nodes(1)

    def for_nodes(self, nodes: int) -> Facts:
        """Return the facts of an allocation: `nodes` and `cores` are totals, all other facts are those of one node.

        Raises:
            MachineError: `nodes` is less than 1, or more than the machine has.
        """
        most = self.nodes.count
        if nodes < 1 or (most is not None and nodes > most):
            msg = f"machine {self.name!r} has {most or 'an unknown number of'} nodes; ask for 1 or more, got {nodes}"
            raise MachineError(msg)
        return flat_facts(self.given, nodes)

    @property
    def given(self) -> dict[str, Any]:
        """The known facts by path: `cpu.cores_per_node`. Each table in [measured] is one value."""
        dumped = self.model_dump(exclude_none=True)
        return {
            f"{section}.{key}": value
            for section, table in dumped.items()
            if isinstance(table, dict) and section != "sources"
            for key, value in table.items()
        }

    def source(self, path: str) -> str:
        """Return the source of a fact; empty if the description names none."""
        return self.sources.get(path) or self.sources.get(path.partition(".")[0], "")

    def to_toml(self) -> str:
        """Return the description as TOML, which `parse` reads."""
        table = self.model_dump(exclude_none=True)
        return tomltext.to_toml({key: value for key, value in table.items() if value not in ("", {})})


def load(path: Path) -> MachineDescription:
    """Read a description from a file; without a name in it, the machine takes the file's name.

    Raises:
        MachineError: the file cannot be read, is not TOML, or has errors: all are listed, each with its path.
    """
    return parse({"name": path.stem, **tomlfiles.read(path, "machine file", MachineError)}, str(path))


def parse(table: Mapping[str, Any], source: str) -> MachineDescription:
    """Return the description in a table.

    Args:
        table: The content of a description file.
        source: The name of the file, for messages.

    Raises:
        MachineError: the table has errors: all are listed, each with its path.
    """
    return tomlfiles.validate(table, MachineDescription, source, MachineError, _unknown_sources(table))


def sections() -> dict[str, type[BaseModel]]:
    """Return the models of the sections that contain facts, by name."""
    return {
        "nodes": Nodes,
        "cpu": Cpu,
        "memory": Memory,
        "gpu": Gpu,
        "network": Network,
        "disk": Disk,
        "software": Software,
        "measured": MeasuredFigures,
    }


def _unknown_sources(table: Mapping[str, Any]) -> list[Problem]:
    """Return a problem for each source that names no fact.

    A validator of pydantic would run only if the rest of the description is valid.
    """
    named = table.get("sources", {})
    if not isinstance(named, Mapping):
        return []
    tables = {name: value for name, value in table.items() if name in sections() and isinstance(value, Mapping)}
    known = {*tables, *(f"{name}.{key}" for name, keys in tables.items() for key in keys)}
    return [
        Problem(
            f"no such fact here{did_you_mean(path, known)}; give the path of a fact or of a section", f"sources.{path}"
        )
        for path in named
        if path not in known
    ]
