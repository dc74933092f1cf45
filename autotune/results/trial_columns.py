"""The columns of the table of trials, for commands, files and the service."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from autotune.formatting import without_rounding_error
from autotune.records.study import State, TrialRecord
from autotune.statistics.standings import Standings
from autotune.studyfile.definition import Definition
from objectives.base import Metric


@dataclass(frozen=True)
class Column:
    """A column of the table of trials.

    Attributes:
        name: Its name.
        of: Returns its value for a trial; None without a value.
        unit: The unit of the value.
        sortable: Whether trials can be chosen and sorted by it.
        absent: Replaces a missing value in a row.
    """

    name: str
    of: Callable[[TrialRecord], Any]
    unit: str = ""
    sortable: bool = True
    absent: Any = None

    @property
    def title(self) -> str:
        """The name with the unit, for display."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


def trial_columns(standings: Standings, definition: Definition) -> tuple[Column, ...]:
    """Return the columns of a study's trials in their order; a later column replaces one of the same name."""
    target = definition.target

    def value(trial: TrialRecord) -> float | None:
        return without_rounding_error(standings.value(trial)) if trial.complete else None

    def bound(trial: TrialRecord) -> float | None:
        return without_rounding_error(standings.bound_of(trial)) if trial.state is State.CAPPED else None

    def speed_up(trial: TrialRecord) -> float | None:
        found = standings.speed_up(trial)
        return without_rounding_error(found.ratio) if found else None

    def breaks(trial: TrialRecord) -> str:
        return ", ".join(map(str, standings.limits.breaches(trial.number)))

    def confirmed(trial: TrialRecord) -> bool:
        found = standings.speed_up(trial)
        return bool(found and found.confirmed)

    return (
        Column("trial", lambda trial: trial.number),
        Column("state", state_of),
        Column("runs", lambda trial: len(trial.runs)),
        Column("value", value, target.unit),
        Column("bound", bound, target.unit),
        *(_steps(target) if any(map(_steps_of, standings.trials.values())) else ()),
        Column("speed_up", speed_up),
        *map(metric_column, definition.metrics),
        Column("core_s", lambda trial: without_rounding_error(trial.core_s), "core-s"),
        Column("breaks", breaks, sortable=False),
        Column("confirmed", confirmed, sortable=False),
        *(_parameter(parameter["name"]) for parameter in definition.space["parameters"]),
        Column("message", lambda trial: trial.message or None, absent=""),
    )


def metric_column(metric: Metric) -> Column:
    """Return the column of a metric: its median over the runs of a trial."""
    return Column(metric.name, lambda trial: _middle(trial.measured(metric.name)), metric.unit)


def row_of(trial: TrialRecord, columns: Sequence[Column]) -> dict[str, Any]:
    """Return a trial as a flat row."""
    found = {column.name: column.of(trial) for column in columns}
    return found | {column.name: column.absent for column in columns if found[column.name] is None}


def state_of(trial: TrialRecord) -> str:
    """Return `complete`, `capped`, `running`, or the kind of failure."""
    failed = trial.failure
    return failed.failure.value if failed and failed.failure else trial.state.value


def _steps(target: Metric) -> tuple[Column, Column]:
    """Return the columns for programs that work in steps: the last step, and the metric at that step."""

    def at_steps(trial: TrialRecord) -> float | None:
        return None if _steps_of(trial) is None else trial.outcomes[-1].metrics.get(target.name)

    return Column("steps", _steps_of, sortable=False), Column("at_steps", at_steps, target.unit, sortable=False)


def _steps_of(trial: TrialRecord) -> int | None:
    return trial.runs[-1].steps if trial.runs else None


def _parameter(name: str) -> Column:
    return Column(name, lambda trial: trial.configuration.get(name))


def _middle(values: Sequence[float]) -> float | None:
    if not values:
        return None
    middle = median(values)
    whole = all(isinstance(value, int) for value in values) and middle == int(middle)
    return int(middle) if whole else without_rounding_error(middle)
