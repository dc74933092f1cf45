"""The ratio of two machines: how many times as good the best configuration on one is as that on the other."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import exp, hypot, log
from typing import Any

from autotune.performance.regression.prediction import Interval, Prediction, deviations_within
from autotune.statistics.ratio_words import ends, times
from objectives.base import Metric


@dataclass(frozen=True)
class MachineRatio:
    """How many times as good the first of two `machines` is as the second; None if unknown, for the reason `why`."""

    machines: tuple[str, str]
    metric: Metric
    ratio: Interval | None
    why: str = ""

    def sentence(self) -> str:
        """Return the ratio with its interval, or why it is unknown, in words."""
        first, second = self.machines
        if self.ratio is None:
            return f"how {first} compares with {second} is not known: {self.why}"
        value, low, high = self.ratio.value, self.ratio.low, self.ratio.high
        text = f"{first} is {times(value, self.metric)} {second}"
        text += f" ({ends((value, low, high), self.metric)}, {self.ratio.confidence:.0%})"
        return f"{text}; which of them is better is not known: the interval holds 1" if low <= 1.0 <= high else text

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "machines": list(self.machines),
            "metric": self.metric.name,
            "ratio": None if self.ratio is None else asdict(self.ratio),
            "why": self.why,
        }


def machine_ratios(predictions: Mapping[str, Prediction]) -> list[MachineRatio]:
    """Return the ratio of the first machine to each other machine, by the prediction for each."""
    (first, prediction), *others = predictions.items()
    return [_ratio((first, other), prediction, of_other) for other, of_other in others]


def _ratio(machines: tuple[str, str], first: Prediction, second: Prediction) -> MachineRatio:
    metric, other = first.setting.metric, second.setting.metric
    if not metric.compares_with(other):
        why = f"{machines[0]} is judged by {metric.name}, {machines[1]} by {other.name}"
        return MachineRatio(machines, metric, None, why)
    values = []
    for machine, prediction in zip(machines, (first, second), strict=True):
        if not prediction.proposals:
            return MachineRatio(machines, metric, None, f"nothing can be proposed for {machine}")
        value = prediction.proposals[0].value
        if value is None:
            return MachineRatio(machines, metric, None, f"{metric.name} on {machine} is not known")
        values.append(value)
    ratio = _divide(values[0], values[1], metric)
    if not ratio.says_something:
        why = f"any ratio from {ratio.low:.3g} to {ratio.high:.3g} is possible"
        return MachineRatio(machines, metric, None, why)
    return MachineRatio(machines, metric, ratio)


def _divide(first: Interval, second: Interval, metric: Metric) -> Interval:
    """Return how many times as good the first value is as the second.

    The two errors count as independent. An error that both share would cancel, so the interval is then too wide rather
    than too narrow. Its confidence is that of the less certain value.
    """
    share = min(first.confidence, second.confidence)
    deviations = [log(value.high / value.low) / 2.0 / deviations_within(value.confidence) for value in (first, second)]
    middle = metric.cost(log(second.value)) - metric.cost(log(first.value))
    half = deviations_within(share) * hypot(*deviations)
    return Interval(exp(middle), exp(middle - half), exp(middle + half), share)
