"""The gap between a training's metric on its training data and on other data."""

from objectives.base import Metric

GAP = "gap"

_WORTH_SAYING = 0.2


def gap_metric(metric: Metric) -> Metric:
    """Return the metric for how much worse `metric` is on other data."""
    return Metric(GAP, metric.unit)


def gap(metric: Metric, trained: float, validated: float) -> float:
    """Return how much worse a metric is on other data than on the training data; negative if it is better."""
    return metric.cost(validated) - metric.cost(trained)


def overfit_sentence(metric: Metric, trained_name: str, trained: float, validated: float) -> str:
    """Return a sentence on overfitting if the gap exceeds a fifth of the larger value; else empty."""
    largest = max(abs(trained), abs(validated))
    if not largest or gap(metric, trained, validated) / largest <= _WORTH_SAYING:
        return ""
    return f"overfits: {metric.name} {validated:.3g}, but {trained_name} {trained:.3g}"
