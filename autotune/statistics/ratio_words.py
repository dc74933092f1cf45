"""Ratios in words: how many times better something is, said as the metric has it."""

from objectives.base import Metric

Interval = tuple[float, float, float]
"""A ratio, and the ends of its interval."""


def times(ratio: float, metric: Metric, digits: str = ".3g") -> str:
    """Say a ratio, to stand before what is compared with: `1.83 times as fast as`, `1.95 times lower in val_loss than`.

    Above 1 is better. A quality that is worse is said the other way round: what is 0.5 times as good is a loss that is
    2 times higher.
    """
    if not metric.is_quality:
        return f"{ratio:{digits}} times as fast as"
    lower = (metric.direction == "minimize") == (ratio >= 1.0)
    return f"{max(ratio, 1.0 / ratio):{digits}} times {'lower' if lower else 'higher'} in {metric.name} than"


def ends(interval: Interval, metric: Metric) -> str:
    """Say the ends of an interval of a ratio, as `times` says the ratio: `1.728 to 2.059`."""
    ratio, low, high = interval
    if metric.is_quality and ratio < 1.0:
        low, high = 1.0 / high, 1.0 / low
    return f"{low:.3f} to {high:.3f}"


def ratio_title(metric: Metric) -> str:
    """Return the title of a column, or an axis, of ratios to the default."""
    return "gain" if metric.is_quality else "speed-up"
