"""Rows: a trial as a flat row of a table, for commands and routes that show or export all of them."""

from collections.abc import Sequence
from statistics import median
from typing import Any

from autotune.records.study import Definition, State, TrialRecord
from autotune.statistics.standings import Standings


def trial_row(trial: TrialRecord, standings: Standings, definition: Definition) -> dict[str, Any]:
    """Return a trial as a flat table row; the metrics are medians over its runs."""
    row: dict[str, Any] = {"trial": trial.number, "state": state_of(trial), "runs": len(trial.runs)}
    row["value"] = _figure(standings.value(trial)) if trial.complete else None
    row["bound"] = _figure(standings.bound(trial)) if trial.state is State.CAPPED else None
    last = trial.runs[-1] if trial.runs else None
    if last is not None and last.steps is not None:
        row |= {"steps": last.steps, "at_steps": last.outcome.metrics.get(definition.target.name)}
    speed_up = standings.speed_up(trial)
    row["speed_up"] = _figure(speed_up.ratio) if speed_up else None
    for metric in definition.metrics:
        values = trial.measured(metric.name)
        row[metric.name] = _middle(values) if values else None
    row["core_s"] = _figure(sum(run.core_s for run in (*trial.earlier, *trial.runs)))
    row["breaks"] = ", ".join(map(str, standings.limits.breaches(trial.number)))
    row["confirmed"] = bool(speed_up and speed_up.confirmed)
    parameters = [parameter["name"] for parameter in definition.space["parameters"]]
    row |= {name: trial.configuration.get(name) for name in parameters}
    row["message"] = trial.message
    return row


def state_of(trial: TrialRecord) -> str:
    """Return `complete`, `capped`, `running`, or the kind of failure."""
    failed = trial.failure
    return failed.failure.value if failed and failed.failure else trial.state.value


def _middle(values: Sequence[float]) -> float:
    middle = median(values)
    whole = all(isinstance(value, int) for value in values) and middle == int(middle)
    return int(middle) if whole else _figure(middle)


def _figure(value: float) -> float:
    """Return a figure that was computed of others without the last digits, which computing has spoiled."""
    return float(f"{value:.12g}")
