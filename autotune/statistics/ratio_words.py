"""Ratios in words: how many times better something is, in the terms of its metric."""

from objectives.base import Metric

Interval = tuple[float, float, float]
"""A ratio, and the ends of its interval."""


def times(ratio: float, metric: Metric, digits: str = ".3g") -> str:
    """Return a ratio in words, to precede the other side: `1.83 times as fast as`, `1.95 times lower in val_loss than`.

    Above 1 is better. A quality below 1 is inverted: 0.5 times as good is a loss that is 2 times higher.
    """
    if not metric.is_quality:
        return f"{ratio:{digits}} times as fast as"
    lower = (metric.direction == "minimize") == (ratio >= 1.0)
    return f"{max(ratio, 1.0 / ratio):{digits}} times {'lower' if lower else 'higher'} in {metric.name} than"


def ends(interval: Interval, metric: Metric) -> str:
    """Return the ends of a ratio's interval in words, inverted as in `times`: `1.728 to 2.059`."""
    ratio, low, high = interval
    if metric.is_quality and ratio < 1.0:
        low, high = 1.0 / high, 1.0 / low
    return f"{low:.3f} to {high:.3f}"


def change_text(interval: Interval, metric: Metric) -> str:
    """Return how much lower or higher a metric is: `memory_bytes 1.204 times higher (1.188 to 1.220)`.

    The interval is of a ratio, above 1 if it is better.
    """
    middle, low, high = interval
    if low == high == 1.0:
        return f"{metric.name} the same in every pair"
    way = "lower" if (metric.direction == "minimize") == (middle >= 1.0) else "higher"
    doubt = "" if low > 1.0 or high < 1.0 else ", no significant difference"
    size, *limits = (middle, low, high) if middle >= 1.0 else (1.0 / middle, 1.0 / high, 1.0 / low)
    return f"{metric.name} {size:.3f} times {way} ({limits[0]:.3f} to {limits[1]:.3f}{doubt})"


def ratio_title(metric: Metric) -> str:
    """Return the title of a column, or an axis, of ratios to the default."""
    return "gain" if metric.is_quality else "speed-up"
