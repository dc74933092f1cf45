"""The gap between what a training reaches on the data that it trains with and on other data."""

from objectives.base import Metric

GAP = "gap"

_WORTH_SAYING = 0.2


def gap_metric(metric: Metric) -> Metric:
    """Return the metric that says by how much `metric` is worse on other data."""
    return Metric(GAP, metric.unit)


def gap(metric: Metric, trained: float, validated: float) -> float:
    """Return by how much a value on other data is worse than that on the data that it trained with; below 0: better."""
    return metric.cost(validated) - metric.cost(trained)


def overfit_sentence(metric: Metric, trained_name: str, trained: float, validated: float) -> str:
    """Say that a training overfits: it is worse by more than a fifth of the larger value; empty if it is not."""
    largest = max(abs(trained), abs(validated))
    if not largest or gap(metric, trained, validated) / largest <= _WORTH_SAYING:
        return ""
    return f"overfits: {metric.name} {validated:.3g}, but {trained_name} {trained:.3g}"
