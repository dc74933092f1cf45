"""The two metrics of a trade-off, with the front of what no other trial beats in both."""

from statistics import median
from typing import TYPE_CHECKING

from autotune.formatting import quantity, shown
from autotune.pictures.chart import Axis, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thinned, told
from autotune.pictures.labels import axis_of, better, counted
from autotune.results.pareto import second_metric

if TYPE_CHECKING:
    from autotune.results.summary import Summary

_MOST = 600


def tradeoff(summary: "Summary") -> Chart | None:
    """Draw the complete trials in both metrics; None for studies of one metric."""
    points, second = summary.front, second_metric(summary.definition)
    if not points or second is None:
        return None
    first, baseline = summary.standings.metric, summary.standings.baseline
    front = {point.trial for point in points}
    trials = [trial for trial in summary.trials if trial.complete and trial.measured(second.name)]
    keep = {number for number, trial in enumerate(trials) if trial.number in front or trial is baseline}
    drawn = thinned(trials, _MOST, keep)
    values = {trial.number: tuple(median(trial.measured(metric.name)) for metric in (first, second)) for trial in drawn}
    marks: list[Mark] = []
    labels = {Role.TRIAL: "trial", Role.BEST: "front", Role.BASELINE: "default"}
    for role, label in labels.items():
        mine = [
            trial
            for trial in drawn
            if role is (Role.BASELINE if trial is baseline else Role.BEST if trial.number in front else Role.TRIAL)
        ]
        if mine:
            x, y = (tuple(values[trial.number][index] for trial in mine) for index in (0, 1))
            hover = tuple(
                f"trial {trial.number}: {quantity(values[trial.number][0], first)}, "
                f"{quantity(values[trial.number][1], second)}\n{shown(trial.configuration)}"
                for trial in mine
            )
            marks.append(Points(role, label, x, y, hover))
    marks.insert(
        0, Line(Role.BEST, "", tuple(point.first for point in points), tuple(point.second for point in points))
    )
    axes = [axis_of(metric, [pair[index] for pair in values.values()]) for index, metric in enumerate((first, second))]
    text = (
        f"{first.name} ({better(first)}) and {second.name} ({better(second)}) of {counted(len(trials), 'trial')}; "
        f"no other trial beats the {len(points)} on the front in both.{told(len(drawn), len(trials))}"
    )
    rows = tuple(
        (point.trial, point.first, point.second, shown(summary.standings.trials[point.trial].configuration))
        for point in points
    )
    units = [Axis(metric.name, metric.unit).text for metric in (first, second)]
    table = Table(("trial", *units, "configuration"), rows)
    return Chart("tradeoff", "The trade-off", text, (Panel(axes[0], axes[1], tuple(marks)),), table)
