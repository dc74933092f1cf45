"""The mix of a stored study: its inputs, their shares, and their metrics."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from autotune.records.study import Definition
from objectives.base import Metric

# A single input is not a mix.
_LEAST_MIXED = 2


@dataclass(frozen=True)
class MixedInput:
    """One input of a mix: its share (all shares add up to 1) and the metric of its value (`target`)."""

    name: str
    share: float
    target: Metric


def mixed_inputs(definition: Definition) -> tuple[MixedInput, ...]:
    """Return the inputs of a study's mix, in their order; empty for a study of one input."""
    told: list[Mapping[str, object]] = definition.study.get("inputs") or []
    weights = {str(one["name"]): weight for one in told if (weight := float(str(one["weight"]))) > 0.0}
    if len(weights) < _LEAST_MIXED:
        return ()
    total = fsum(weights.values())
    return tuple(
        MixedInput(name, weight / total, _target(definition.metrics[1:], name)) for name, weight in weights.items()
    )


def _target(metrics: tuple[Metric, ...], name: str) -> Metric:
    return next(metric for metric in metrics if metric.name.endswith(f"[{name}]"))
