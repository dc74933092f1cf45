"""The chart of a sweep: a curve over the first parameter, or one for each value of the second."""

from collections.abc import Mapping, Sequence

from autotune.comparison.sweep import Sweep, SweepPoint
from autotune.formatting import configuration_text, quantity, value_text
from autotune.pictures.ablation import Bar
from autotune.pictures.chart import Axis, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.labels import axis_of, better, count_noun, is_wide
from spaces import Value


def sweep_bars(sweep: Sweep) -> tuple[Bar, ...]:
    """Return a bar for each point that has a value."""
    return tuple(
        Bar(point.label, point.value, point.value if point.low is None else point.low, point.high or point.value)
        for point in sweep.measured
        if point.value is not None
    )


def sweep_chart(sweep: Sweep, study: str) -> Chart | None:
    """Return the chart of the values with their intervals; None without values."""
    if not sweep.measured:
        return None
    first = sweep.over[0]
    places = _places([point.values[first] for point in sweep.measured])
    groups: dict[tuple[Value | None, ...], list[SweepPoint]] = {}
    for point in sweep.measured:
        groups.setdefault(tuple(point.values[name] for name in sweep.over[1:]), []).append(point)
    marks: list[Mark] = []
    for number, (others, points) in enumerate(groups.items()):
        label = " ".join(f"{name}={value_text(value)}" for name, value in zip(sweep.over[1:], others, strict=True))
        marks += _curve(points, first, places, sweep, number, label)
    for point in sweep.measured:
        if point.is_base and point.value is not None:
            place = (places[point.values[first]],)
            marks.append(Points(Role.BASELINE, sweep.base_name, place, (point.value,), (_hover_text(point, sweep),)))
    ends = [end for point in sweep.measured for end in (point.value, point.low, point.high) if end is not None]
    panel = Panel(_axis(first, places), axis_of(sweep.metric, ends), tuple(marks))
    text = (
        f"{sweep.metric.name} ({better(sweep.metric)}) over {' and '.join(sweep.over)}, the others fixed at "
        f"{configuration_text(sweep.base)}: {count_noun(len(sweep.measured), 'configuration')}, "
        f"{count_noun(sweep.rounds, 'interleaved round')}, {sweep.confidence:.0%} intervals."
    )
    broken = [point.label for point in sweep.measured if point.broken]
    text += f" These break limits: {', '.join(broken)}." * bool(broken)
    columns = (*sweep.over, Axis(sweep.metric.name, sweep.metric.unit).text, "from", "to")
    rows = tuple(
        (*(value_text(value) for value in point.values.values()), point.value, point.low, point.high)
        for point in sweep.measured
    )
    return Chart("sweep", f"study {study}: {' and '.join(sweep.over)}", text, (panel,), Table(columns, rows))


def _curve(  # noqa: PLR0913, PLR0917  the points, their positions and the look of a curve
    points: Sequence[SweepPoint],
    first: str,
    places: Mapping[Value | None, float],
    sweep: Sweep,
    number: int,
    label: str,
) -> list[Mark]:
    known = [(places[point.values[first]], point, point.value) for point in points if point.value is not None]
    known.sort(key=lambda entry: entry[0])
    role = Role.SERIES if len(sweep.over) > 1 else Role.TRIAL
    x = tuple(place for place, _, _ in known)
    y = tuple(value for _, _, value in known)
    low = tuple(value if point.low is None else point.low for _, point, value in known)
    high = tuple(value if point.high is None else point.high for _, point, value in known)
    hover = tuple(_hover_text(point, sweep) for _, point, _ in known)
    marked = Points(role, label or "one value", x, y, hover, low, high, number=number)
    return [Line(role, "", x, y, number=number), marked]


def _places(values: Sequence[Value | None]) -> dict[Value | None, float]:
    """Return the positions of values on the axis: numbers are their own position, words follow one another."""
    if all(isinstance(value, int | float) and not isinstance(value, bool) for value in values):
        return {value: float(value) for value in values if isinstance(value, int | float)}
    return {value: float(index) for index, value in enumerate(dict.fromkeys(values))}


def _axis(name: str, places: Mapping[Value | None, float]) -> Axis:
    ticks = tuple((place, value_text(value)) for value, place in places.items())
    numbers = [place for value, place in places.items() if value == place and not isinstance(value, bool)]
    return Axis(name, log=len(numbers) == len(places) and is_wide(numbers), ticks=ticks)


def _hover_text(point: SweepPoint, sweep: Sweep) -> str:
    assert point.value is not None
    interval = f" ({point.low:.4g} to {point.high:.4g})" if point.low is not None and point.high is not None else ""
    breaks = f"\nbreaks {'; '.join(point.broken)}" if point.broken else ""
    return f"{point.label}\n{quantity(point.value, sweep.metric)}{interval}, {count_noun(point.runs, 'run')}{breaks}"
