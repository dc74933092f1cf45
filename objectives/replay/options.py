"""What a study file may say about a table, and what the metric of the table is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from objectives.base import Metric, MetricKind, PlanError
from objectives.options import read_options
from spaces.parameters.problem import Problem

SECONDS: Mapping[str, float] = {
    "s": 1.0,
    "sec": 1.0,
    "seconds": 1.0,
    "ms": 1e-3,
    "milliseconds": 1e-3,
    "miliseconds": 1e-3,  # so spelt in published files of the schema T4
    "us": 1e-6,
    "microseconds": 1e-6,
    "ns": 1e-9,
    "nanoseconds": 1e-9,
    "min": 60.0,
    "h": 3600.0,
}
"""Units of time, in seconds."""


class RecordedMetric(BaseModel):
    """A metric beside the optimised one, by its name in the table; a name alone is enough."""

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
        table: a shipped table, or the path of a file: CSV, a cache of Kernel Tuner, T4 results, each also as `.gz`; or
            a storage of autotune.
        study: which study of a storage.
        metric: what is optimised: a column, or a figure of Kernel Tuner's (`time` by default).
        unit: its unit; the end of a column's name (`_s`, `_sec`, `_ms`) tells it, too.
        direction: `maximize` for a rate, otherwise `minimize`, unless said.
        kind: `time` where the unit is one of time, otherwise `other`, unless said.
        metrics: other metrics that were recorded: columns, or figures of an entry; each in the unit of the table.
        parameters: the columns of a CSV file that are the parameters.
        elapsed: the column with the seconds that a run took; a metric of kind time says it otherwise.
        setup: the column with the seconds that every run of a configuration pays first.
        failure: the column with the words of a run that failed.
        done: the column that says whether a run ended well.
        bound: the column with the bound of a run that was stopped since it had lost.
        cores: the column with the number of cores that a run held.
        worker: the column with the name of the node that made a run.
        space: a file with the space: T1, or what `autotune check --space --json` prints as `space`.
        unrecorded: what becomes of configurations of the space that were not measured: they `fail`, or are left out of
            the space (`leave-out`).
        default: the default configuration; parameters that it leaves out are unset.
        repeats: whether every recorded repeat is a run; false: a configuration has one, with their mean.
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
            PlanError: they have errors: all of them, each with its path.
        """
        return read_options(cls, options, "a replay")


@dataclass(frozen=True)
class Scale:
    """The metric of a table, and by what the numbers of the file are multiplied: times become seconds."""

    metric: Metric
    factor: float = 1.0


def scale_of(options: ReplayOptions, name: str, unit: str | None) -> Scale:
    """Return the metric called `name`, whose `unit` the file tells, unless the options do.

    Raises:
        PlanError: a metric of kind time has no unit of time.
    """
    given = options.unit if options.unit is not None else unit
    if given is None and options.kind in {None, "time"} and options.direction != "maximize":
        given = _unit_in(name)
    kind: MetricKind = options.kind or ("time" if given in SECONDS and options.direction != "maximize" else "other")
    direction = options.direction or ("maximize" if kind == "rate" else "minimize")
    if kind != "time":
        return Scale(Metric(name, given or "", direction, kind))
    if given is None or given not in SECONDS:
        msg = f"the unit of a time is one of {', '.join(SECONDS)}, got {given!r}"
        raise PlanError(Problem(msg, "options.unit"))
    if direction == "maximize":
        msg = "a time is minimised: kind = 'time' has no direction = 'maximize'"
        raise PlanError(Problem(msg, "options.direction"))
    return Scale(Metric(name, "s", direction, kind), SECONDS[given])


def others_of(options: ReplayOptions, unit_of: Callable[[str], str | None] = lambda _: None) -> tuple[Metric, ...]:
    """Return the metrics beside the optimised one; the file may tell the unit of one.

    Their numbers stay as they are, also times: limits on them are written in the unit that the table has.

    Raises:
        PlanError: a name is there twice.
    """
    given = options.metrics or []
    names = [options.metric, *(other.name for other in given)]
    twice = next((place for place, name in enumerate(names) if name in names[:place]), None)
    if twice is not None:
        msg = f"{names[twice]!r} is there twice: `metric` is optimised, and `metrics` are others"
        raise PlanError(Problem(msg, f"options.metrics.{twice - 1}"))
    units = (other.unit if other.unit is not None else unit_of(other.name) for other in given)
    return tuple(
        Metric(other.name, _written_unit(other.name) if unit is None else unit, other.direction)
        for other, unit in zip(given, units, strict=True)
    )


# A name may end with `_min` that is no minutes.
_IN_NAMES = frozenset({"s", "sec", "ms", "us", "ns"})
_WRITTEN_UNITS: Mapping[str, str] = {"sec": "s", "bytes": "B", "kib": "KiB", "mib": "MiB", "gib": "GiB"}


def _written_unit(name: str) -> str:
    """Return the unit at the end of a name, of time or of memory; nothing where there is none."""
    unit = _unit_in(name)
    return _WRITTEN_UNITS.get(unit or name.rpartition("_")[2].lower(), unit or "")


def _unit_in(name: str) -> str | None:
    """Return the unit at the end of a name: `wall_s`, `elapsed_sec`; None of a rate, `samples_per_s`."""
    rest, _, end = name.rpartition("_")
    return end if end in _IN_NAMES and not rest.endswith("per") else None
