"""A mix as a study holds it: its inputs, what each counts, and what is measured of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from autotune.records.study import Definition
from objectives.base import Metric

# One input alone is no mix.
_LEAST_MIXED = 2


@dataclass(frozen=True)
class MixedInput:
    """One input: its share of the mix (all are 1 together), and the metric that is its value."""

    name: str
    share: float
    target: Metric


def mixed_inputs(definition: Definition) -> tuple[MixedInput, ...]:
    """Return the inputs that a study is tuned for together, in their order; none where it is tuned for one."""
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
