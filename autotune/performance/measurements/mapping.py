"""The mapping: a small TOML file that explains the columns of a table of measurements."""

from collections.abc import Mapping
from math import isfinite
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainValidator, model_validator

from autotune.errors import ImportFileError
from autotune.tomlfiles import reading as tomlfiles
from objectives.base import Metric, MetricKind


def _scalar(given: object) -> object:
    if isinstance(given, float) and not isfinite(given):
        msg = "a number must be finite"
        raise ValueError(msg)
    if not isinstance(given, str | int | float):
        msg = "must be a number, a text, true or false"
        raise ValueError(msg)  # noqa: TRY004  pydantic collects ValueErrors
    return given


def _columns_by_name(given: object) -> object:
    """Accept a list of columns, each named like its parameter."""
    is_list = isinstance(given, list) and all(isinstance(name, str) for name in given)
    return dict(zip(given, given, strict=True)) if isinstance(given, list) and is_list else given


Scalar = Annotated[Any, PlainValidator(_scalar)]
_Text = Annotated[str, Field(min_length=1)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class MetricSection(_Section):
    """One metric of the table.

    Args:
        name: Its name in the program's objective (`wall_s`).
        unit: The unit of that name, after multiplication by `factor`.
        direction: `minimize` or `maximize`.
        kind: `time` of the run, `rate` of its work, or `other`.
        column: Its column, if that is not named like the metric.
        bound: The column with the bound of runs that were stopped: their value would not have been better.
        factor: Multiplies the figures of the table.
    """

    name: _Text
    unit: str = ""
    direction: Literal["minimize", "maximize"] = "minimize"
    kind: MetricKind = "other"
    column: _Text | None = None
    bound: _Text | None = None
    factor: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @property
    def metric(self) -> Metric:
        """This metric as an objective declares it."""
        return Metric(self.name, self.unit, self.direction, self.kind)

    @property
    def cell(self) -> str:
        """The column of its values."""
        return self.column or self.name


class WorkloadSection(_Section):
    """The problem: a fixed `name`, or the `columns` that identify it; `fact_columns` maps facts to columns."""

    name: _Text | None = None
    columns: list[_Text] = Field(default_factory=list)
    facts: dict[str, Scalar] = Field(default_factory=dict)
    fact_columns: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_name(self) -> Self:
        if (self.name is None) == (not self.columns):
            msg = "a workload has either a name or columns"
            raise ValueError(msg)
        return self


class MappingFile(_Section):
    """A whole mapping.

    Args:
        program: The objective, or the study's name for another command.
        source: The page, file or person that the figures come from.
        metrics: At least one metric.
        parameters: The column of each parameter; a list if they have the same names.
        workload: The problem.
        machine: The machine's name; or `machine_column`.
        nodes: The number of nodes used; or `nodes_column`.
        failure: The column with the error message of a failed run.
        runs: The column with the number of runs that a row stands for.
        parts: The column of each part of the program, with its wall-clock seconds in one run.
        csv: The table's path, relative to the mapping; or the `rows` themselves.
    """

    program: _Text
    source: _Text
    metrics: list[MetricSection] = Field(min_length=1)
    parameters: Annotated[dict[str, str], BeforeValidator(_columns_by_name)] = Field(min_length=1)
    workload: WorkloadSection
    machine: _Text | None = None
    machine_column: _Text | None = None
    nodes: int | None = Field(default=None, ge=1)
    nodes_column: _Text | None = None
    failure: _Text | None = None
    runs: _Text | None = None
    parts: Annotated[dict[str, str], BeforeValidator(_columns_by_name)] = Field(default_factory=dict)
    csv: _Text | None = None
    rows: list[dict[str, Scalar]] = Field(default_factory=list)

    @model_validator(mode="after")
    def _one_machine(self) -> Self:
        if (self.machine is None) == (self.machine_column is None):
            msg = "a mapping has either machine, a name, or machine_column (or --machine NAME is given)"
            raise ValueError(msg)
        if (self.csv is None) == (not self.rows):
            msg = "a mapping has either csv, a file beside it, or [[rows]]"
            raise ValueError(msg)
        return self

    @model_validator(mode="after")
    def _one_meaning(self) -> Self:
        known: dict[str, Metric] = {}
        for section in self.metrics:
            if known.setdefault(section.name, section.metric) != section.metric:
                msg = (
                    f"metric {section.name!r} has several units, directions or kinds; it may only have several columns"
                )
                raise ValueError(msg)
        return self

    def columns(self) -> dict[str, str]:
        """Return every column that the mapping names, by the path of its key."""
        named = {name: getattr(self, name) for name in ("machine_column", "nodes_column", "failure", "runs")}
        named |= {f"parameters.{name}": column for name, column in self.parameters.items()}
        named |= {f"parts.{name}": column for name, column in self.parts.items()}
        named |= {f"workload.columns.{index}": column for index, column in enumerate(self.workload.columns)}
        named |= {f"workload.fact_columns.{name}": column for name, column in self.workload.fact_columns.items()}
        for index, metric in enumerate(self.metrics):
            named |= {f"metrics.{index}.column": metric.cell, f"metrics.{index}.bound": metric.bound}
        return {path: column for path, column in named.items() if column is not None}


def read_mapping(path: Path, given: Mapping[str, str | None], csv: Path | None = None) -> MappingFile:
    """Read a mapping.

    Args:
        path: The mapping's file.
        given: Program, source, machine or workload from the command line, which replace those of the file.
        csv: The table's path, if the command line names it.

    Raises:
        ImportFileError: The file cannot be read, is not TOML, or has errors; it lists all of them, each with its path.
    """
    table = tomlfiles.read(path, "mapping", ImportFileError)
    return check_mapping(_complete(table, given, csv), str(path))


def check_mapping(table: Mapping[str, Any], path: str) -> MappingFile:
    """Check the table of a mapping; `path` names it in errors.

    Raises:
        ImportFileError: The mapping has errors; it lists all of them, each with its path.
    """
    return tomlfiles.validate(table, MappingFile, path, ImportFileError)


def _complete(table: dict[str, Any], given: Mapping[str, str | None], csv: Path | None) -> dict[str, Any]:
    completed = table | {name: given[name] for name in ("program", "source", "machine") if given.get(name)}
    if given.get("machine"):
        completed.pop("machine_column", None)
    if (nodes := given.get("nodes")) and not completed.keys() & {"nodes", "nodes_column"}:
        completed["nodes"] = int(nodes)
    if given.get("workload") and isinstance(completed.get("workload", {}), dict):
        own = {name: value for name, value in completed.get("workload", {}).items() if name != "columns"}
        completed["workload"] = own | {"name": given["workload"]}
    return completed if csv is None else completed | {"csv": str(csv)}
