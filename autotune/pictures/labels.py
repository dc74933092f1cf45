"""How pictures say values: axes of a metric, gains, and what a point says when it is pointed at."""

from collections.abc import Sequence

from autotune.formatting import quantity, shown
from autotune.pictures.chart import Axis
from autotune.records.study import TrialRecord
from autotune.statistics.standings import Standings
from objectives.base import Metric

# From this ratio on, small values could not be told apart on an even axis.
_WIDE = 12.0


def is_wide(values: Sequence[float]) -> bool:
    """Whether values call for a logarithmic axis: all positive, over more than a decade."""
    return bool(values) and min(values) > 0.0 and max(values) / min(values) > _WIDE


def axis_of(metric: Metric, values: Sequence[float]) -> Axis:
    """Return the axis of a metric for these values."""
    return Axis(metric.name, metric.unit, log=is_wide(values))


def better(metric: Metric) -> str:
    """Say which way is better."""
    return "more is better" if metric.direction == "maximize" else "less is better"


def said(trial: TrialRecord, standings: Standings, note: str = "") -> str:
    """Return what a trial says when it is pointed at: a line with its value, a line with its configuration."""
    if not note:
        note = quantity(standings.value(trial), standings.metric)
        speed_up = standings.speed_up(trial)
        if speed_up is not None and trial is not standings.baseline:
            note += f", {speed_up.words(standings.metric)}"
    return f"trial {trial.number}: {note}\n{shown(trial.configuration)}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 trial`, `1,200 trials`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def brief(value: float) -> str:
    """Return a value for a narrow place: `368M` for 368,400,000."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"
