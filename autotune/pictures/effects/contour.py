"""Contour: the predicted value over two parameters, all others as in the best configuration, with what was measured."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from autotune.errors import CannotRunHereError
from autotune.formatting import quantity, shown, written
from autotune.pictures.chart import Axis, Cell, Cells, Chart, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thinned, told
from autotune.pictures.labels import better, counted, said
from autotune.pictures.scales import UNSET, short
from spaces import Parameter
from spaces.parameters.errors import did_you_mean

if TYPE_CHECKING:
    from autotune.records.study import TrialRecord
    from autotune.results.effects.process import StudyProcess
    from autotune.results.summary import Summary

_Rows = np.ndarray[Any, np.dtype[np.int32]]

_VALUES = 24
_TICKS = 8
_POINTS = 400
_ROWS = 200


@dataclass(frozen=True)
class _Side:
    """A parameter along an axis: which of its value `indexes` are predicted, -1 being that it is unset."""

    place: int
    parameter: Parameter
    indexes: tuple[int, ...]

    @classmethod
    def of(cls, place: int, parameter: Parameter, best: int) -> "_Side":
        """Return the side of the parameter at `place` of the space; the value of the best is among the indexes."""
        first = -1 if parameter.may_be_missing else 0
        every = np.linspace(first, len(parameter.values) - 1, min(_VALUES, len(parameter.values) - first))
        return cls(place, parameter, tuple(sorted({*map(int, every.round()), best})))

    def word(self, index: int) -> str:
        return UNSET if index < 0 else written(self.parameter.values[index])

    @property
    def edges(self) -> list[tuple[float, float]]:
        """From where to where each index is drawn: to the middle between it and the next."""
        middles = [(one + other) / 2.0 for one, other in pairwise(self.indexes)]
        ends = [self.indexes[0] - 0.5, *middles, self.indexes[-1] + 0.5]
        return list(pairwise(ends))

    @property
    def axis(self) -> Axis:
        step = max(1, -(-len(self.indexes) // _TICKS))
        return Axis(
            self.parameter.name,
            ticks=tuple((float(index), short(self.word(index))) for index in self.indexes[::step]),
        )


def contour(summary: "Summary", known: "StudyProcess", names: Sequence[str]) -> Chart | None:
    """Draw what `known` predicts over the two parameters called `names`; None where nothing there can vary.

    Raises:
        CannotRunHereError: there is no such parameter.
    """
    parameters = {parameter.name: place for place, parameter in enumerate(known.space.parameters)}
    for name in names:
        if name not in parameters:
            msg = f"the study has no parameter {name!r}{did_you_mean(name, parameters)}; known: {', '.join(parameters)}"
            raise CannotRunHereError(msg)
    best = summary.best if summary.best is not None and summary.best.complete else known.standings.measured[0]
    row = known.space.indices([best.configuration])[0]
    first, second = (
        _Side.of(parameters[name], known.space.parameters[parameters[name]], int(row[parameters[name]]))
        for name in names
    )
    rows = np.tile(row, (len(first.indexes) * len(second.indexes), 1))
    rows[:, first.place] = np.repeat(first.indexes, len(second.indexes))
    rows[:, second.place] = np.tile(second.indexes, len(first.indexes))
    valid = known.space.valid_indices(rows)
    if valid.sum() < 2:
        return None
    values = known.predicted(rows[valid])
    places = rows[valid][:, [first.place, second.place]]
    cells = _cells(first, second, places, values, summary)
    measured = known.standings.measured
    special = {place for place, trial in enumerate(measured) if trial in (best, known.standings.baseline)}
    drawn = thinned(measured, _POINTS, special)
    points = _points(first, second, drawn, known, summary)
    metric = known.standings.metric
    least = int(np.argmin(values[:, 0] * metric.cost(1.0)))
    blank = "" if valid.all() else f" Of {len(rows)} pairs {int((~valid).sum())} are blank: they are not valid so."
    text = (
        f"{metric.name} ({better(metric)}) as a model of {counted(known.valued, 'trial')} predicts it over {names[0]} "
        f"and {names[1]}, all others as in trial {best.number} ({_others(best, names)}): the stronger the colour, the "
        f"better. Best is {_place(first, second, places[least])}, {_interval(values[least], summary)}.{blank} Points "
        "are trials, whose other parameters may be others."
    )
    panel = Panel(first.axis, second.axis, (cells, *points))
    title = f"Predicted over {names[0]} and {names[1]}"
    description = text + told(len(drawn), len(measured))
    return Chart("contour", title, description, (panel,), _table(first, second, places, values, summary))


def _cells(first: _Side, second: _Side, places: _Rows, values: "np.ndarray[Any, Any]", summary: "Summary") -> Cells:
    logs = np.log(values[:, 0]) * summary.standings.metric.cost(1.0)
    room = float(logs.max() - logs.min()) or 1.0
    across, down = (
        dict(zip(first.indexes, first.edges, strict=True)),
        dict(zip(second.indexes, second.edges, strict=True)),
    )
    x, y = [across[int(place)] for place in places[:, 0]], [down[int(place)] for place in places[:, 1]]
    return Cells(
        Role.PREDICTED,
        "predicted",
        tuple((left + right) / 2.0 for left, right in x),
        tuple((low + high) / 2.0 for low, high in y),
        tuple(right - left for left, right in x),
        tuple(high - low for low, high in y),
        tuple(round(float(share), 3) for share in (logs.max() - logs) / room),
        tuple(
            f"{_place(first, second, place)}\npredicted {_interval(value, summary)}"
            for place, value in zip(places, values, strict=True)
        ),
    )


def _points(
    first: _Side, second: _Side, trials: Sequence["TrialRecord"], known: "StudyProcess", summary: "Summary"
) -> list[Mark]:
    rows = known.space.indices([trial.configuration for trial in trials])
    marks: list[Mark] = []
    best, baseline = summary.best, known.standings.baseline
    for role, label in ((Role.TRIAL, "trial"), (Role.BASELINE, "default"), (Role.WINNER, "winner")):
        own = {Role.WINNER: best, Role.BASELINE: baseline}.get(role)
        mine = [
            place
            for place, trial in enumerate(trials)
            if (trial is own if role is not Role.TRIAL else trial not in (best, baseline))
        ]
        if mine and not (role is Role.WINNER and best is baseline):
            x = tuple(float(rows[place, first.place]) for place in mine)
            y = tuple(float(rows[place, second.place]) for place in mine)
            hover = tuple(said(trials[place], known.standings) for place in mine)
            marks.append(Points(role, label, x, y, hover))
    return marks


def _table(first: _Side, second: _Side, places: _Rows, values: "np.ndarray[Any, Any]", summary: "Summary") -> Table:
    metric = summary.standings.metric
    order = np.argsort(values[:, 0] * metric.cost(1.0), kind="stable")[:_ROWS]
    rows: list[tuple[Cell, ...]] = []
    for at in order:
        words = first.word(int(places[at, 0])), second.word(int(places[at, 1]))
        rows.append((*words, *(float(f"{value:.4g}") for value in values[at])))
    columns = (first.parameter.name, second.parameter.name, Axis(metric.name, metric.unit).text, "from", "to")
    return Table(columns, tuple(rows))


def _place(first: _Side, second: _Side, place: _Rows) -> str:
    words = ((side, int(index)) for side, index in zip((first, second), place, strict=True))
    return ", ".join(f"{side.parameter.name}={side.word(index)}" for side, index in words)


def _interval(value: "np.ndarray[Any, Any]", summary: "Summary") -> str:
    middle, low, high = (quantity(float(one), summary.standings.metric) for one in value)
    return f"{middle} ({low} to {high})"


def _others(trial: "TrialRecord", names: Sequence[str]) -> str:
    others = {name: value for name, value in trial.configuration.items() if name not in names}
    return shown(others) if others else "there is no other"
