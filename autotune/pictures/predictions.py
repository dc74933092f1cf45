"""The charts of predictions beside measured values: of a warm start, and of a test of the model."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import is_wide
from autotune.statistics.ratio_words import ratio_title

if TYPE_CHECKING:
    from autotune.results.summary import Summary

Point = tuple[float, float, float, float]
"""A measured value, the predicted value, and the ends of its interval."""


def warm_start_prediction(summary: "Summary") -> Chart | None:
    """Return the speed-up that a warm start predicted for its first proposal beside measured ones; None without one.

    The speed-up of an earlier study's winner was measured there, so it is no prediction.
    """
    warm, standings = summary.warm, summary.standings
    if warm is None or warm.speed_up is None or not warm.proposals or warm.earlier:
        return None
    by_configuration = {tuple(sorted(trial.configuration.items())): trial for trial in summary.trials}
    tried = [by_configuration.get(tuple(sorted(proposal.items()))) for proposal in warm.proposals]
    known = [standings.speed_up(trial) if trial is not None else None for trial in tried]
    gains = [None if speed_up is None else speed_up.ratio for speed_up in known]
    value, low, high = warm.speed_up
    first = f"predicted: {value:.3g} ({low:.3g} to {high:.3g})\n{configuration_text(warm.proposals[0])}"
    marks: list[Mark] = [
        Points(Role.PREDICTED, "predicted", (value,), (0.0,), (first,), (low,), (high,), sideways=True),
        Line(Role.BASELINE, "default", (1.0, 1.0), (-0.5, len(gains) - 0.5)),
    ]
    there = [(float(index), gain) for index, gain in enumerate(gains) if gain is not None]
    if there:
        hover = tuple(
            f"measured: {gain:.3g}\n{configuration_text(warm.proposals[int(index)])}" for index, gain in there
        )
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
            configuration_text(warm.proposals[index]),
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
