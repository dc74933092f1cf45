"""The charts of a trade-off: its metrics in pairs with the front, and the growth of the front."""

from itertools import combinations
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text, join_words
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import axis_of, better, count_noun
from autotune.results.growth import REFERENCE, FrontGrowth
from autotune.results.pareto import ParetoFront, ParetoPoint, points_of

if TYPE_CHECKING:
    from autotune.results.summary import Summary

_MOST = 600
_COLUMNS = 3
_LABELS = {Role.TRIAL: "trial", Role.BEST: "front", Role.BASELINE: "default"}


def tradeoff(summary: "Summary") -> Chart | None:
    """Return the complete trials in every pair of metrics; None for studies with a single metric."""
    front = summary.front
    if front is None or not front.points:
        return None
    baseline, on_front = summary.standings.baseline, {point.trial for point in front.points}
    roles = dict.fromkeys(on_front, Role.BEST) | ({} if baseline is None else {baseline.number: Role.BASELINE})
    points = points_of(summary.trials, front.metrics)
    drawn = thin(points, _MOST, {index for index, point in enumerate(points) if point.trial in roles})
    marks = {
        point: f"trial {point.trial}: {front.quantities(point)}\n"
        f"{configuration_text(summary.standings.trials[point.trial].configuration)}"
        for point in drawn
    }
    panels = tuple(_panel(front, (x, y), marks, roles) for x, y in combinations(range(len(front.metrics)), 2))
    text = (
        f"{join_words([f'{metric.name} ({better(metric)})' for metric in front.metrics])} of "
        f"{count_noun(len(points), 'trial')}; {front.others} beats the {len(front.points)} on the front in "
        f"{front.of_them}.{thinning_note(len(drawn), len(points))}"
    )
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (point.trial, *point.values, configuration_text(summary.standings.trials[point.trial].configuration))
        for point in front.points
    )
    units = [Axis(metric.name, metric.unit).text for metric in front.metrics]
    table = Table(("trial", *units, "configuration"), rows)
    return Chart("tradeoff", "The trade-off", text, panels, table, min(len(panels), _COLUMNS))


def _panel(front: ParetoFront, pair: tuple[int, int], hover: dict[ParetoPoint, str], roles: dict[int, Role]) -> Panel:
    """Return the panel of a pair of metrics, with the points of `hover`."""
    marks: list[Mark] = []
    if len(front.metrics) == 2:
        # With more than two metrics the front is not a line in two of them. Between points there is nothing: steps.
        x, y = (tuple(point.values[index] for point in front.points) for index in pair)
        marks.append(Line(Role.BEST, "", x, y, steps=True))
    for role, label in _LABELS.items():
        mine = [point for point in hover if roles.get(point.trial, Role.TRIAL) is role]
        if mine:
            x, y = (tuple(point.values[index] for point in mine) for index in pair)
            marks.append(Points(role, label, x, y, tuple(hover[point] for point in mine)))
    across, up = (axis_of(front.metrics[index], [point.values[index] for point in hover]) for index in pair)
    return Panel(across, up, tuple(marks))


def front_growth(summary: "Summary") -> Chart | None:
    """Return the share of the final hypervolume after each trial; None without a front."""
    front = summary.front
    if front is None or not front.points:
        return None
    growth = FrontGrowth.of(front, summary.standings)
    budgets = [(Axis("trial", whole=True), tuple(map(float, growth.trials)))]
    if growth.core_s[-1] > 0.0:
        budgets.append((Axis("tuning", "core-s"), growth.core_s))
    up = Axis("share of the final hypervolume")
    panels = tuple(Panel(along, up, (Line(Role.BEST, "", x, growth.shares, steps=True),)) for along, x in budgets)
    text = (
        f"The hypervolume of the front after each trial, as a share of the present one: {growth.sentence()}. Each "
        f"metric is scaled from 0 to 1 over the present front; the reference point is {REFERENCE:g} in each."
    )
    rows: list[tuple[Cell, ...]] = []
    for row in zip(growth.trials, growth.core_s, growth.shares, strict=True):
        if not rows or row[2] != rows[-1][2]:
            rows.append(row)
    table = Table(("trial", "core-seconds so far", "share"), tuple(rows))
    return Chart("hypervolume", "Growth of the front", text, panels, table, len(panels))
