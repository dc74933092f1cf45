"""The words of pictures: axes of a metric, numbers with nouns, and hover texts."""

from collections.abc import Sequence

from autotune.formatting import configuration_text, quantity
from autotune.pictures.chart import Axis
from autotune.records.study import TrialRecord
from autotune.statistics.standings import Standings
from objectives.base import Metric

# From this ratio on, small values would coincide on a linear axis.
_WIDE = 12.0


def is_wide(values: Sequence[float]) -> bool:
    """Whether values need a logarithmic axis: all are positive and span more than a decade."""
    return bool(values) and min(values) > 0.0 and max(values) / min(values) > _WIDE


def axis_of(metric: Metric, values: Sequence[float]) -> Axis:
    """Return the axis of a metric for these values."""
    return Axis(metric.name, metric.unit, log=is_wide(values))


def better(metric: Metric) -> str:
    """Return in words which direction of a metric is better."""
    return "more is better" if metric.direction == "maximize" else "less is better"


def hover_text(trial: TrialRecord, standings: Standings, note: str = "") -> str:
    """Return the hover text of a trial: a line with `note` or its value, and a line with its configuration."""
    if not note:
        note = quantity(standings.value(trial), standings.metric)
        speed_up = standings.speed_up(trial)
        if speed_up is not None and trial is not standings.baseline:
            note += f", {speed_up.words(standings.metric)}"
    return f"trial {trial.number}: {note}\n{configuration_text(trial.configuration)}"


def count_noun(number: int, noun: str) -> str:
    """Return a number with its noun: `1 trial`, `1,200 trials`."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def brief(value: float) -> str:
    """Return a short form of a value, for narrow places: `368M` for 368,400,000."""
    for factor, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"
