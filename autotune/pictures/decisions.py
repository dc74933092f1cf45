"""The chart of a decision table: the default beside the decisions, with a panel for each context."""

from collections.abc import Iterator, Mapping, Sequence
from math import sqrt
from typing import TYPE_CHECKING

from autotune.formatting import as_sentence, configuration_text, parameter_text, quantity, value_text
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import axis_of, better, count_noun, is_wide
from autotune.pictures.scales import short

if TYPE_CHECKING:
    from autotune.decisions.table import DecisionTable
    from objectives.base import Metric
    from objectives.decision import Decision
    from spaces import Configuration, Value

_COLUMNS = 3
_MOST_PANELS = 24
_TICKS = 4
_LETTERS = 30

_Cells = Sequence[tuple["Decision", float]]
"""Decisions along the axis, each with the default's value there."""


def decisions(table: "DecisionTable") -> Chart | None:
    """Return the decisions along the points, or along the last ordered context; None before any run."""
    from autotune.decisions import ranges  # noqa: PLC0415  reads the search's model, which takes a second to import

    axis = ranges.axis_of(table)
    values = {
        _cell(decision): value
        for decision, value in zip(table.decisions, table.defaults, strict=True)
        if value is not None
    }
    groups = [table.decisions] if axis is None else list(ranges.by_context(table.decisions, axis))
    known = [[(one, values[_cell(one)]) for one in group if _cell(one) in values] for group in groups]
    every = [group for group in known if group]
    if not every:
        return None
    # If there are too many panels, draw those with most decisions other than the default.
    most = sorted(every, key=lambda group: -sum(not one.is_default for one, _ in group))[:_MOST_PANELS]
    drawn = [group for group in every if group in most]
    names = {
        configuration_text(one.chosen): one for group in drawn for one, _ in group if not one.is_default and one.pairs
    }
    numbers = {name: number for number, name in enumerate(names)}
    panels = tuple(_Panel(group, axis, table, numbers).draw() for group in drawn)
    text = (
        f"{table.metric.name} ({better(table.metric)}) of the default, and of the decision where it is another "
        f"setting, with {table.confidence:.0%} intervals; dotted lines mark changes of the decision. "
        f"{' '.join(map(as_sentence, table.sentences()))}"
    )
    if len(drawn) < len(every):
        text += (
            f" {len(drawn)} of {count_noun(len(every), 'context')} are drawn, those that differ most from the default."
        )
    cells = [cell for group in every for cell in group]
    return Chart("decisions", "The decision table", text, panels, _table(cells, table), min(len(panels), _COLUMNS))


def _cell(decision: "Decision") -> tuple[str, float | None]:
    return configuration_text(decision.contexts), decision.point


def _table(cells: _Cells, table: "DecisionTable") -> Table:
    unit = Axis(table.metric.name, table.metric.unit).text
    where = (*table.over, *((table.points or "point",) if cells[0][0].point is not None else ()))
    columns = (*where, "use", f"default, {unit}", f"as decided, {unit}", "over the default", "from", "to", "pairs")
    rows: list[tuple[Cell, ...]] = []
    for one, default in cells:
        contexts = [value_text(one.contexts[name]) for name in table.over]
        point = () if one.point is None else (parameter_text(one.point, table.points or "point"),)
        setting = "default" if one.is_default else configuration_text(one.chosen)
        value = _value_of_decision(one, default, table.metric)[0]
        ratios = (None, None, None) if one.is_default and not one.pairs else (one.ratio, one.low, one.high)
        rows.append((*contexts, *point, setting, default, value, *ratios, one.pairs or None))
    return Table(columns, tuple(rows))


def _value_of_decision(decision: "Decision", default: float, metric: "Metric") -> tuple[float, float, float]:
    """Return the value of a decision and the ends of its interval, from the default's value and the ratio."""
    if decision.is_default or decision.ratio is None:
        return default, default, default
    ratios = (decision.ratio, decision.high or decision.ratio, decision.low or decision.ratio)
    if metric.direction == "maximize":
        middle, high, low = (default * ratio for ratio in ratios)
    else:
        middle, low, high = (default / ratio for ratio in ratios)
    return middle, low, high


class _Panel:
    """Draws the cells of one context along the axis."""

    def __init__(self, cells: _Cells, axis: str | None, table: "DecisionTable", numbers: Mapping[str, int]) -> None:
        from autotune.decisions.ranges import place_of  # noqa: PLC0415

        self._cells, self._axis, self._table, self._numbers = cells, axis, table, numbers
        self._where: list[Value] = [
            configuration_text(one.contexts) if axis is None else place_of(one, axis) for one, _ in cells
        ]
        sizes = [float(place) for place in self._where if isinstance(place, int | float)]
        self._log = len(sizes) == len(cells) and is_wide(sizes)
        self._x = tuple(sizes) if self._log else tuple(map(float, range(len(cells))))

    def draw(self) -> Panel:
        """Return the panel."""
        metric = self._table.metric
        best = [_value_of_decision(one, default, metric) for one, default in self._cells]
        defaults = tuple(default for _, default in self._cells)
        said = tuple(
            f"{self._place(index)}\ndefault: {quantity(value, metric)}" for index, value in enumerate(defaults)
        )
        marks: list[Mark] = [*self._changes((*defaults, *(value for value, _, _ in best)))]
        if self._axis is not None:
            marks.append(Line(Role.BASELINE, "", self._x, defaults))
            if not all(one.is_default for one, _ in self._cells):
                marks.append(Line(Role.BEST, "as decided", self._x, tuple(value for value, _, _ in best)))
        marks += [Points(Role.BASELINE, "default", self._x, defaults, said), *self._settings(best)]
        ends = [end for three in best for end in three]
        return Panel(self._across(), axis_of(metric, [*defaults, *ends]), tuple(marks), self._title())

    def _settings(self, best: Sequence[tuple[float, float, float]]) -> Iterator[Mark]:
        """Yield points for the cells that differ from the default: a series for each setting, hollow without pairs."""
        groups: dict[str, list[int]] = {}
        for index, (one, _) in enumerate(self._cells):
            if not one.is_default:
                groups.setdefault(configuration_text(one.chosen) if one.pairs else "", []).append(index)
        for setting, places in groups.items():
            first = self._cells[places[0]][0]
            label = _setting_name(first.chosen, first.default) if setting else "by the model, without fresh pairs"
            x = tuple(self._x[place] for place in places)
            y, low, high = (tuple(best[place][part] for place in places) for part in range(3))
            hover = tuple(f"{self._place(place)}\n{self._hover_text(place, best[place][0])}" for place in places)
            role = Role.SERIES if setting else Role.PREDICTED
            yield Points(role, label, x, y, hover, low, high, number=self._numbers.get(setting, 0))

    def _changes(self, values: Sequence[float]) -> Iterator[Mark]:
        """Yield a line between neighbours with different decisions."""
        if self._axis is None:
            return
        for index in range(1, len(self._cells)):
            before, here = self._cells[index - 1][0], self._cells[index][0]
            if dict(before.chosen) != dict(here.chosen):
                first, second = self._x[index - 1], self._x[index]
                x = sqrt(first * second) if self._log else (first + second) / 2.0
                yield Line(Role.GUIDE, "", (x, x), (min(values), max(values)))

    def _hover_text(self, index: int, value: float) -> str:
        one, metric = self._cells[index][0], self._table.metric
        ratio = "" if one.ratio is None else f", {one.ratio:.3f} times better than the default"
        interval = "" if one.low is None or one.high is None else f" ({one.low:.3f} to {one.high:.3f})"
        return f"{configuration_text(one.chosen)}: {quantity(value, metric)}{ratio}{interval}"

    def _place(self, index: int) -> str:
        contexts = configuration_text(self._cells[index][0].contexts)
        point = self._cells[index][0].point
        return contexts if point is None else f"{contexts} {self._table.points}={self._word(index)}"

    def _word(self, index: int) -> str:
        place = self._where[index]
        return value_text(place) if self._axis is None else parameter_text(place, self._axis)

    def _across(self) -> Axis:
        count = len(self._cells)
        most = count if self._axis is None else _TICKS
        shares = [step * (count - 1) / max(1, most - 1) for step in range(most)] if count > most else range(count)
        ticks = tuple(
            (self._x[index], short(self._word(index), _LETTERS)) for index in dict.fromkeys(map(round, shares))
        )
        return Axis(self._axis or "", log=self._log, ticks=ticks)

    def _title(self) -> str:
        if self._axis is None:
            return ""
        contexts = self._cells[0][0].contexts
        words = (
            f"{value}" if isinstance(value, str) else f"{name}={value_text(value)}"
            for name, value in contexts.items()
            if name != self._axis
        )
        return ", ".join(words)


def _setting_name(chosen: "Configuration", default: "Configuration") -> str:
    """Return a short name of a setting: its differences from the default, without parameter names if they are long."""
    changed = {name: value for name, value in chosen.items() if default.get(name) != value}
    words = configuration_text(changed) if changed else configuration_text(chosen)
    if len(words) > _LETTERS and changed:
        words = ", ".join(map(value_text, changed.values()))
    return short(words, _LETTERS)
