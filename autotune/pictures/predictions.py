"""The charts of predictions with their intervals, beside measured values."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autotune.formatting import listed, quantity, shown
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import axis_of, better, counted, is_wide
from autotune.statistics.ratio_words import ratio_title
from spaces import Configuration

if TYPE_CHECKING:
    from autotune.performance.regression.prediction import Interval, Prediction
    from autotune.results.summary import Summary

Measured = Sequence[tuple[Configuration, float]]
"""Configurations with their measured values, in the metric's unit."""

Point = tuple[float, float, float, float]
"""A measured value, the predicted value, and the ends of its interval."""


def predicted(prediction: "Prediction", measured: Measured = ()) -> Chart | None:
    """Return the predicted values of the proposals and the default beside measured ones; None without predictions."""
    rows = [("default", prediction.default, prediction.default_value)]
    rows += [
        (str(number), proposal.configuration, proposal.value)
        for number, proposal in enumerate(prediction.proposals, start=1)
    ]
    known = [_measured_of(configuration, measured) for _, configuration, _ in rows]
    if all(value is None for _, _, value in rows):
        return None
    metric = prediction.setting.metric
    marks: list[Mark] = []
    intervals = [(float(index), row) for index, row in enumerate(rows) if row[2] is not None]
    marks.append(_predicted_points([(index, _words(row), row[2]) for index, row in intervals if row[2] is not None]))
    there = [(float(index), value) for index, value in enumerate(known) if value is not None]
    if there:
        hover = tuple(f"measured: {quantity(value, metric)}\n{_words(rows[int(index)])}" for index, value in there)
        x = tuple(value for _, value in there)
        marks.append(Points(Role.MEASURED, "measured", x, tuple(index for index, _ in there), hover))
    values = [end for _, _, value in rows if value for end in (value.low, value.high)] + [value for _, value in there]
    ticks = tuple((float(index), name) for index, (name, *_) in enumerate(rows))
    panel = Panel(axis_of(metric, values), Axis("proposal", ticks=ticks, reverse=True), tuple(marks))
    cells = tuple(
        (name, *_cells(value), None if actual is None else float(f"{actual:.6g}"), shown(configuration))
        for (name, configuration, value), actual in zip(rows, known, strict=True)
    )
    unit = Axis(metric.name, metric.unit).text
    columns = ("proposal", f"predicted {unit}", "from", "to", "measured", "configuration")
    text = f"Predicted {metric.name} ({better(metric)}) on {prediction.setting.machine}, without any run: "
    text += _first(rows) + _coverage(rows, known)
    return Chart("predicted", "Predicted and measured", text, (panel,), Table(columns, cells))


Row = tuple[str, Configuration, "Interval | None"]


def _first(rows: Sequence[Row]) -> str:
    parts = [f"{name} {value}" if name == "default" else f"proposal {name} {value}" for name, _, value in rows[:2]]
    return f"{listed(parts)}."


def _coverage(rows: Sequence[Row], known: Sequence[float | None]) -> str:
    pairs = [(value, actual) for (_, _, value), actual in zip(rows, known, strict=True) if value and actual is not None]
    if not pairs:
        return " No proposal was measured."
    held = sum(value.low <= actual <= value.high for value, actual in pairs)
    return f" {counted(len(pairs), 'value')} measured: {held} in the interval."


def _measured_of(configuration: Configuration, measured: Measured) -> float | None:
    return next((value for other, value in measured if dict(other) == dict(configuration)), None)


def _words(row: Row) -> str:
    name, configuration, _ = row
    return f"{'the default' if name == 'default' else f'proposal {name}'}\n{shown(configuration)}"


def _cells(value: "Interval | None") -> tuple[Cell, Cell, Cell]:
    if value is None:
        return None, None, None
    return float(f"{value.value:.6g}"), float(f"{value.low:.6g}"), float(f"{value.high:.6g}")


def _predicted_points(intervals: "Sequence[tuple[float, str, Interval]]") -> Points:
    return Points(
        Role.PREDICTED,
        "predicted",
        tuple(value.value for _, _, value in intervals),
        tuple(index for index, _, _ in intervals),
        tuple(f"predicted: {value}\n{words}" for _, words, value in intervals),
        low=tuple(value.low for _, _, value in intervals),
        high=tuple(value.high for _, _, value in intervals),
        sideways=True,
    )


def warm_start_prediction(summary: "Summary") -> Chart | None:
    """Return the speed-up that a warm start predicted for its first proposal beside measured ones; None without one."""
    warm, standings = summary.warm, summary.standings
    if warm is None or warm.speed_up is None or not warm.proposals:
        return None
    by_configuration = {tuple(sorted(trial.configuration.items())): trial for trial in summary.trials}
    tried = [by_configuration.get(tuple(sorted(proposal.items()))) for proposal in warm.proposals]
    known = [standings.speed_up(trial) if trial is not None else None for trial in tried]
    gains = [None if speed_up is None else speed_up.ratio for speed_up in known]
    value, low, high = warm.speed_up
    first = f"predicted: {value:.3g} ({low:.3g} to {high:.3g})\n{shown(warm.proposals[0])}"
    marks: list[Mark] = [
        Points(Role.PREDICTED, "predicted", (value,), (0.0,), (first,), (low,), (high,), sideways=True),
        Line(Role.BASELINE, "default", (1.0, 1.0), (-0.5, len(gains) - 0.5)),
    ]
    there = [(float(index), gain) for index, gain in enumerate(gains) if gain is not None]
    if there:
        hover = tuple(f"measured: {gain:.3g}\n{shown(warm.proposals[int(index)])}" for index, gain in there)
        x = tuple(gain for _, gain in there)
        marks.insert(1, Points(Role.MEASURED, "measured", x, tuple(index for index, _ in there), hover))
    ticks = tuple((float(index), str(index + 1)) for index in range(len(gains)))
    x_axis = Axis(
        f"{ratio_title(standings.metric)} over the default", log=is_wide([low, high, *(gain for _, gain in there)])
    )
    panel = Panel(x_axis, Axis("proposal", ticks=ticks, reverse=True), tuple(marks))
    cells = tuple(
        (
            index + 1,
            *((_three(warm.speed_up)) if index == 0 else (None, None, None)),
            None if gain is None else float(f"{gain:.4g}"),
            shown(warm.proposals[index]),
        )
        for index, gain in enumerate(gains)
    )
    columns = ("proposal", f"predicted {ratio_title(standings.metric)}", "from", "to", "measured", "configuration")
    text = f"The prediction when the study began: {warm.sentence(standings)}."
    return Chart("predicted", "Predicted and measured", text, (panel,), Table(columns, cells))


def _three(interval: tuple[float, float, float]) -> tuple[Cell, ...]:
    return tuple(float(f"{value:.4g}") for value in interval)


def calibration(settings_by_title: Mapping[str, Mapping[str, Sequence[Point]]]) -> Chart:
    """Return predicted over measured values, a panel for each way to leave out, a series for each setting."""
    panels = []
    rows: list[tuple[Cell, ...]] = []
    for title, settings in settings_by_title.items():
        values = [value for points in settings.values() for point in points for value in point[:2]]
        marks: list[Mark] = []
        if values:
            ends = (min(values), max(values))
            marks.append(Line(Role.GUIDE, "", ends, ends))
        for number, (name, points) in enumerate(settings.items()):
            measured, middle, low, high = (tuple(column) for column in zip(*points, strict=True))
            hover = tuple(f"{name}\nmeasured {actual:.4g}, predicted {expected:.4g}" for actual, expected, *_ in points)
            marks.append(Points(Role.SERIES, name, measured, middle, hover, low, high, number=number))
            held = sum(lower <= value <= upper for value, _, lower, upper in points) / len(points)
            rows.append((title, name, len(points), round(held, 4)))
        log = bool(values)
        y = Axis("predicted, with its interval", log=log)
        panels.append(Panel(Axis("measured", log=log), y, tuple(marks), title))
    text = "Predicted over measured values that the model did not see; on the dotted line both are equal."
    table = Table(("left out", "setting", "values", "share in the interval"), tuple(rows))
    return Chart("calibration", "", text, tuple(panels), table, columns=max(1, len(panels)))
