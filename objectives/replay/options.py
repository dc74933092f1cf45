"""The options of a replay, and the metrics of a table."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.base import Metric, MetricKind, PlanError
from objectives.options import read_options
from objectives.units import SECONDS, usual_units
from spaces.parameters.problem import Problem


class RecordedMetric(BaseModel):
    """A metric besides the optimised one, by its name in the table; a name alone is enough."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    name: str
    unit: str | None = None
    direction: Literal["minimize", "maximize"] = "minimize"

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: object) -> object:
        return {"name": given} if isinstance(given, str) else given


class ReplayOptions(BaseModel):
    """The `[options]` of a replay.

    Args:
        table: A shipped table, or the path of a file: CSV, a cache of Kernel Tuner, T4 results, each also as `.gz`; or
            a storage of autotune.
        study: The study, if the table is a storage.
        metric: The optimised metric: a column, or a figure of Kernel Tuner's (`time` by default).
        unit: Its unit; by default that at the end of a column's name (`_s`, `_sec`, `_ms`).
        direction: By default `maximize` for a rate, otherwise `minimize`.
        kind: By default `time` for a unit of time, otherwise `other`.
        metrics: Other recorded metrics: columns, or figures of an entry, each in the unit of the table.
        parameters: The columns of a CSV file that are parameters.
        elapsed: The column with the seconds of a run; not needed for a metric of kind time.
        setup: The column with the seconds that each run of a configuration needs first.
        failure: The column with the message of a failed run.
        done: The column that says whether a run ended normally.
        bound: The column with the bound of a run that was stopped because it had lost.
        cores: The column with the number of cores of a run.
        worker: The column with the name of the node that made a run.
        space: A file with the space: T1, or what `autotune check --space --json` prints as `space`.
        unrecorded: The fate of configurations of the space that were not measured: they `fail`, or are left out of
            the space (`leave-out`).
        default: The default configuration; parameters that it leaves out are unset.
        repeats: Whether each recorded repeat is a run; if false, a configuration has one run with their mean.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    table: str
    study: str | None = None
    metric: str | None = None
    unit: str | None = None
    direction: Literal["minimize", "maximize"] | None = None
    kind: MetricKind | None = None
    metrics: list[RecordedMetric] | None = None
    parameters: list[str] | None = Field(default=None, min_length=1)
    elapsed: str | None = None
    setup: str | None = None
    failure: str | None = None
    done: str | None = None
    bound: str | None = None
    cores: str | None = None
    worker: str | None = None
    space: str | None = None
    unrecorded: Literal["fail", "leave-out"] = "fail"
    default: dict[str, int | float | str | bool] | None = None
    repeats: bool = True

    @classmethod
    def read(cls, options: Mapping[str, Any]) -> "ReplayOptions":
        """Check options from a study file.

        Raises:
            PlanError: The options have errors; all are reported, each with its path.
        """
        return read_options(cls, options, "a replay")


@dataclass(frozen=True)
class Scale:
    """The metric of a table, and the factor for the numbers in the file: times become seconds."""

    metric: Metric
    factor: float = 1.0


def scale_of(options: ReplayOptions, name: str, unit: str | None) -> Scale:
    """Return the metric called `name`; the options' unit overrides the file's `unit`.

    Raises:
        PlanError: A metric of kind time has no unit of time.
    """
    given = options.unit if options.unit is not None else unit
    if given is None and options.kind in {None, "time"} and options.direction != "maximize":
        given = _unit_in(name)
    kind: MetricKind = options.kind or ("time" if given in SECONDS and options.direction != "maximize" else "other")
    direction = options.direction or ("maximize" if kind == "rate" else "minimize")
    if kind != "time":
        return Scale(Metric(name, given or "", direction, kind))
    if given is None or given not in SECONDS:
        msg = f"the unit of a time is one of {', '.join(usual_units('s'))}, got {given!r}"
        raise PlanError(Problem(msg, "options.unit"))
    if direction == "maximize":
        msg = "a time is minimised: kind = 'time' has no direction = 'maximize'"
        raise PlanError(Problem(msg, "options.direction"))
    return Scale(Metric(name, "s", direction, kind), SECONDS[given])


def others_of(options: ReplayOptions, unit_of: Callable[[str], str | None] = lambda _: None) -> tuple[Metric, ...]:
    """Return the metrics besides the optimised one; the file may give the unit of one.

    Their numbers are not converted, not even times: limits on them are written in the unit of the table.

    Raises:
        PlanError: A name occurs twice.
    """
    given = options.metrics or []
    names = [options.metric, *(other.name for other in given)]
    twice = next((place for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        msg = f"{names[twice]!r} occurs twice: `metric` is optimised, and `metrics` are others"
        raise PlanError(Problem(msg, f"options.metrics.{twice - 1}"))
    units = (other.unit if other.unit is not None else unit_of(other.name) for other in given)
    return tuple(
        Metric(other.name, _unit_of(other.name) if unit is None else unit, other.direction)
        for other, unit in zip(given, units, strict=True)
    )


# Without `min`: a name that ends with `_min` may mean a minimum.
_IN_NAMES = frozenset({"s", "sec", "ms", "us", "ns"})
_WRITTEN_UNITS: Mapping[str, str] = {"sec": "s", "bytes": "B", "kib": "KiB", "mib": "MiB", "gib": "GiB"}


def _unit_of(name: str) -> str:
    """Return the unit of time or memory at the end of a name; empty without one."""
    unit = _unit_in(name)
    return _WRITTEN_UNITS.get(unit or name.rpartition("_")[2].lower(), unit or "")


def _unit_in(name: str) -> str | None:
    """Return the unit of time at the end of a name (`wall_s`, `elapsed_sec`); None for a rate (`samples_per_s`)."""
    rest, _, end = name.rpartition("_")
    return end if end in _IN_NAMES and not rest.endswith("per") else None
