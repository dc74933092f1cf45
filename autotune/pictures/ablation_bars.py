"""The bars of an ablation: the default, each option of the winner alone on top of it, and all of them together."""

from dataclasses import dataclass

from autotune.comparison.findings import Ablation, OptionEffect, alongside
from autotune.formatting import quantity
from autotune.statistics.ratio_words import Interval
from objectives.base import Metric

WIDTH = 32
_BLOCKS = " ▏▎▍▌▋▊▉█"


@dataclass(frozen=True)
class Bar:
    """A value of the metric with the ends of its interval, all in the metric's unit; the default's has none."""

    label: str
    value: float
    low: float
    high: float


def bars(ablation: Ablation, metric: Metric) -> tuple[Bar, ...]:
    """Return the bars of the measured variants: their speed-ups over the default, times its value."""
    if ablation.baseline is None:
        return ()
    base = ablation.baseline
    options = ((_label(effect), effect.alone) for effect in ablation.effects)
    rows = [*options, (f"all {len(ablation.options)}: trial {ablation.winner}", ablation.combined)]
    if ablation.simplified is not None and ablation.accepted:
        rows.append((f"without {len(ablation.dropped)} of them", ablation.over_default))
    measured = (_bar(label, interval, base, metric) for label, interval in rows if interval is not None)
    return (Bar("default", base, base, base), *measured)


def _label(effect: OptionEffect) -> str:
    return " ".join(filter(None, (effect.values, alongside(effect.alone_with))))


def _bar(label: str, speed_up: Interval, base: float, metric: Metric) -> Bar:
    values = [base * factor if metric.direction == "maximize" else base / factor for factor in speed_up]
    return Bar(label, values[0], min(values), max(values))


def lines(rows: tuple[Bar, ...], metric: Metric) -> list[str]:
    """Return the bars as lines of text, the longest `WIDTH` characters long, with value and interval."""
    if not rows:
        return []
    longest = max(bar.value for bar in rows)
    room = max(len(bar.label) for bar in rows)
    return [f"{bar.label:<{room}}  {_drawn(bar.value / longest):<{WIDTH}}  {_figures(bar, metric)}" for bar in rows]


def _drawn(share: float) -> str:
    eighths = round(8 * WIDTH * share)
    return (_BLOCKS[8] * (eighths // 8) + _BLOCKS[eighths % 8]).rstrip()


def _figures(bar: Bar, metric: Metric) -> str:
    interval = f" ({bar.low:.4g} to {bar.high:.4g})" if bar.low < bar.high else ""
    return f"{quantity(bar.value, metric)}{interval}"
