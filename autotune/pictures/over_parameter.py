"""The chart of a metric, or of a part that a program times itself, over one parameter, with lines for another."""

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

from autotune.errors import CannotRunHereError
from autotune.formatting import configuration_text, join_words, quantity, value_text
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import axis_of, better
from autotune.pictures.program_parts import parts_of
from autotune.pictures.scales import Scale, scales_of
from autotune.records.study import TrialRecord
from objectives.base import Metric
from spaces import Configuration
from spaces.parameters.errors import did_you_mean

if TYPE_CHECKING:
    from autotune.results.summary import Summary

_LINES = 8
# Quantities that are known of every job, even if they are not metrics of the objective.
_USED = {"elapsed_s": "s", "cpu_s": "s", "peak_memory_bytes": "B"}


def draw_over(summary: "Summary", what: str, parameter: str, lines: str | None = None) -> Chart | None:
    """Return a metric or a part of the best trial at each value of `parameter`; None without values.

    Args:
        summary: The study.
        what: The name of the metric or part.
        parameter: The parameter on the x axis.
        lines: A parameter with a line for each value; None for a single line.

    Raises:
        CannotRunHereError: The study does not have the parameter, the metric or the part.
    """
    scales = {scale.name: scale for scale in scales_of(summary.definition.space)}
    for name in (parameter, lines):
        if name is not None and name not in scales:
            msg = f"the study has no parameter {name!r}{did_you_mean(name, scales)}; known: {', '.join(scales)}"
            raise CannotRunHereError(msg)
    metric = _metric(summary, what)
    scale, groups = scales[parameter], _groups(summary, metric, scales[parameter], lines)
    if not groups:
        return None
    several = len(groups) > 1 or lines is not None
    # If there are too many lines, draw those with most points.
    kept = sorted(groups, key=lambda label: -len(groups[label]))[:_LINES]
    marks: list[Mark] = []
    for number, (label, points) in enumerate((label, groups[label]) for label in groups if label in kept):
        role = Role.SERIES if several else Role.TRIAL
        x, y = tuple(sorted(points)), tuple(points[place][1] for place in sorted(points))
        hover = tuple(_hover_text(*points[place], metric, summary) for place in sorted(points))
        named = label or "best trial"
        marks += [Line(role, "", x, y, number=number), Points(role, named, x, y, hover, number=number)]
    values = [value for points in groups.values() for _, value in points.values()]
    panel = Panel(scale.axis, axis_of(metric, values), tuple(marks))
    about = f", a line for each value of {lines}" if lines is not None else ""
    more = f" {len(kept)} of {len(groups)} lines are drawn." if len(kept) < len(groups) else ""
    text = (
        f"{metric.name} over {parameter}{about}, of the trial with the best {summary.standings.metric.name} at each "
        f"({better(summary.standings.metric)}).{_best(groups, scale, metric, summary)}{more} The other parameters vary "
        "between the trials: a sweep keeps them fixed."
    )
    title = f"{metric.name} over {parameter}"
    return Chart("over", title, text, (panel,), _table(groups, metric, parameter, lines))


_Groups = Mapping[str, Mapping[float, tuple[TrialRecord, float]]]


def _metric(summary: "Summary", what: str) -> Metric:
    """Return the metric, or the part as a metric.

    Raises:
        CannotRunHereError: The study has neither.
    """
    metrics = {metric.name: metric for metric in summary.definition.metrics}
    if what in metrics:
        return metrics[what]
    recorded = {name for trial in summary.trials for outcome in trial.outcomes for name in outcome.metrics}
    timed = {name for trial in summary.standings.ranking for name in parts_of(trial)}
    if what in recorded:
        return Metric(what, "", "minimize")
    if what in timed:
        return Metric(what, "s", "minimize")
    if what in _USED:
        return Metric(what, _USED[what], "minimize")
    known = list(dict.fromkeys((*metrics, *sorted(recorded), *_USED, *sorted(timed))))
    msg = f"the study has no metric or part {what!r}{did_you_mean(what, known)}; known: {', '.join(known)}"
    raise CannotRunHereError(msg)


def _groups(
    summary: "Summary", metric: Metric, scale: Scale, lines: str | None
) -> dict[str, dict[float, tuple[TrialRecord, float]]]:
    """Return the best trial with its value for each line and position."""
    groups: dict[str, dict[float, tuple[TrialRecord, float]]] = {}
    found: dict[str, Configuration] = {}
    # The ranking begins with the best trial, so the first trial at a position is the best there.
    for trial in summary.standings.ranking:
        place, value = scale.place(trial.configuration), _value(trial, metric)
        if place is None or value is None:
            continue
        label = "" if lines is None else f"{lines}={value_text(trial.configuration.get(lines))}"
        found.setdefault(label, trial.configuration)
        groups.setdefault(label, {}).setdefault(place, (trial, value))
    if lines is None:
        return groups
    other = next(one for one in scales_of(summary.definition.space) if one.name == lines)
    order = sorted(groups, key=lambda label: other.place(found[label]) or 0.0)
    return {label: groups[label] for label in order}


def _value(trial: TrialRecord, metric: Metric) -> float | None:
    values = trial.measured(metric.name)
    if not values and metric.name in _USED:
        values = [getattr(outcome.usage, metric.name) for outcome in trial.outcomes if outcome.complete]
    return median(values) if values else parts_of(trial).get(metric.name)


def _best(groups: _Groups, scale: Scale, metric: Metric, summary: "Summary") -> str:
    """Return in words which line is best at each position, by the runs of tuning."""
    if len(groups) < 2 or metric != summary.standings.metric:
        return ""
    sign = -1.0 if metric.direction == "maximize" else 1.0
    places = sorted({place for points in groups.values() for place in points})
    winners: dict[str, list[str]] = {}
    for place in places:
        there = [
            (sign * points[place][1], label, points[place][0]) for label, points in groups.items() if place in points
        ]
        there.sort(key=lambda one: one[0])
        if len(there) > 1 and there[0][0] < there[1][0]:
            _, label, trial = there[0]
            winners.setdefault(label, []).append(value_text(trial.configuration.get(scale.name)))
    said = "; ".join(f"{label} at {join_words(values)}" for label, values in winners.items())
    return f" Best in the runs of tuning, by {scale.name}: {said}." if said else ""


def _table(groups: _Groups, metric: Metric, parameter: str, lines: str | None) -> Table:
    columns = (*([lines] if lines is not None else []), parameter, Axis(metric.name, metric.unit).text, "of trial")
    rows: list[tuple[Cell, ...]] = []
    for label, points in groups.items():
        for _, (trial, value) in sorted(points.items()):
            mine = [label.partition("=")[2]] if lines is not None else []
            figure = float(f"{value:.6g}")
            rows.append((*mine, value_text(trial.configuration.get(parameter)), figure, trial.number))
    return Table(columns, tuple(rows))


def _hover_text(trial: TrialRecord, value: float, metric: Metric, summary: "Summary") -> str:
    own = summary.standings.metric
    best = "" if metric == own else f", {own.name} {quantity(summary.standings.value(trial), own)}"
    return f"trial {trial.number}: {quantity(value, metric)}{best}\n{configuration_text(trial.configuration)}"
