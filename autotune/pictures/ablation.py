"""The chart of an ablation: bars for the default, for each option alone, and for all options together."""

from collections.abc import Sequence
from dataclasses import dataclass

from autotune.comparison.findings import Ablation, OptionEffect, alongside
from autotune.formatting import join_words, quantity
from autotune.pictures.chart import Axis, Bars, Chart, Line, Mark, Panel, Role, Table
from autotune.pictures.labels import better, count_noun
from autotune.pictures.scales import short
from autotune.statistics.ratio_words import Interval
from objectives.base import Metric

_LABEL = 34
WIDTH = 32
_BLOCKS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Bar:
    """A value with the ends of its interval, in the metric's unit; for the default both ends are the value."""

    label: str
    value: float
    low: float
    high: float


def bars(ablation: Ablation, metric: Metric) -> tuple[Bar, ...]:
    """Return the bars of the measured variants; each is the default's value changed by the variant's speed-up."""
    if ablation.baseline is None:
        return ()
    base = ablation.baseline
    options = ((_label(effect), effect.alone) for effect in ablation.effects)
    rows = [*options, (f"all {len(ablation.options)}: trial {ablation.winner}", ablation.combined)]
    if ablation.simplified is not None and ablation.is_accepted:
        rows.append((f"without {len(ablation.dropped)} of them", ablation.over_default))
    measured = (_bar(label, interval, base, metric) for label, interval in rows if interval is not None)
    return (Bar("default", base, base, base), *measured)


def _label(effect: OptionEffect) -> str:
    return " ".join(filter(None, (effect.values, alongside(effect.alone_with))))


def _bar(label: str, speed_up: Interval, base: float, metric: Metric) -> Bar:
    values = [base * factor if metric.direction == "maximize" else base / factor for factor in speed_up]
    return Bar(label, values[0], min(values), max(values))


def lines(rows: tuple[Bar, ...], metric: Metric) -> list[str]:
    """Return the bars as lines of text with value and interval; the longest bar has `WIDTH` characters."""
    if not rows:
        return []
    longest = max(bar.value for bar in rows)
    room = max(len(bar.label) for bar in rows)
    return [
        f"{bar.label:<{room}}  {_share_text(bar.value / longest):<{WIDTH}}  {_figures(bar, metric)}" for bar in rows
    ]


def _share_text(share: float) -> str:
    eighths = round(8 * WIDTH * share)
    return (_BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()


def _figures(bar: Bar, metric: Metric) -> str:
    interval = f" ({bar.low:.4g} to {bar.high:.4g})" if bar.low < bar.high else ""
    return f"{quantity(bar.value, metric)}{interval}"


def ablation(result: Ablation, target: Metric, metrics: Sequence[Metric] = ()) -> Chart | None:
    """Return the chart of an ablation with a panel for each metric; None without measured variants."""
    readings = [(metric, one, bars(one, metric)) for metric, one in result.readings(target, metrics)]
    readings = [reading for reading in readings if reading[2]]
    if not readings:
        return None
    names = join_words([f"{metric.name} ({better(metric)})" for metric, *_ in readings])
    text = f"{names} of the default, of the default with each option of {result.subject} alone, and with all"
    text += f" {count_noun(len(result.options), 'option')}, from {count_noun(result.rounds, 'interleaved round')}"
    text += f", with {result.confidence:.0%} intervals."
    for metric, one, _ in readings:
        helps = [effect.name for effect in one.effects if effect.alone is not None and effect.alone[1] > 1.0]
        where = f" in {metric.name}" if result.further else ""
        text += f" Significantly better alone{where}: {join_words(helps)}." * bool(helps)
        text += f" No option is significantly better alone{where}." * (not helps)
    if result.is_accepted:
        text += f" {join_words(result.dropped)} can be left out of {result.subject}."
    panels = tuple(_panel(drawn, metric) for metric, _, drawn in readings)
    tables = [_table(drawn, metric) for metric, _, drawn in readings]
    table = tables[0] if len(tables) == 1 else _join(tables)
    return Chart("ablation", "The effect of each option", text, panels, table)


def _join(tables: Sequence[Table]) -> Table:
    """Join the tables of several metrics, with a column for the metric."""
    rows = tuple((label, table.columns[1], *figures) for table in tables for label, *figures in table.rows)
    return Table(("configuration", "metric", "value", "from", "to"), rows)


def _panel(drawn: Sequence[Bar], metric: Metric) -> Panel:
    """Return the panel of bars; the first is the default's."""
    marks: list[Mark] = []
    for role, label in ((Role.BASELINE, "default"), (Role.TRIAL, "one option"), (Role.WINNER, "all options")):
        mine = [(index, bar) for index, bar in enumerate(drawn) if _role(index, bar) is role]
        if mine:
            known = role is not Role.BASELINE
            marks.append(
                Bars(
                    role,
                    label,
                    tuple(float(index) for index, _ in mine),
                    tuple(bar.value for _, bar in mine),
                    tuple(_hover_text(bar, metric) for _, bar in mine),
                    tuple(bar.low for _, bar in mine) if known else (),
                    tuple(bar.high for _, bar in mine) if known else (),
                )
            )
    level = drawn[0].value
    marks.append(Line(Role.BASELINE, "", (level, level), (-0.5, len(drawn) - 0.5)))
    ticks = tuple((float(index), short(bar.label, _LABEL)) for index, bar in enumerate(drawn))
    return Panel(Axis(metric.name, metric.unit), Axis(ticks=ticks, reverse=True), tuple(marks))


def _table(drawn: Sequence[Bar], metric: Metric) -> Table:
    rows = tuple((bar.label, _figure(bar.value), _figure(bar.low), _figure(bar.high)) for bar in drawn)
    return Table(("configuration", Axis(metric.name, metric.unit).text, "from", "to"), rows)


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def _role(index: int, bar: Bar) -> Role:
    if index == 0:
        return Role.BASELINE
    return Role.WINNER if bar.label.startswith(("all ", "without ")) else Role.TRIAL


def _hover_text(bar: Bar, metric: Metric) -> str:
    interval = f" ({bar.low:.4g} to {bar.high:.4g})" if bar.low < bar.high else ""
    return f"{bar.label}\n{quantity(bar.value, metric)}{interval}"
