"""A mix as a study holds it: its inputs, what each counts, and what is measured of it."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum

from autotune.records.study import Definition
from objectives.base import Metric


@dataclass(frozen=True)
class MixedInput:
    """One input: its share of the mix (all are 1 together), and the metric that is its value."""

    name: str
    share: float
    target: Metric


def mixed_inputs(definition: Definition) -> tuple[MixedInput, ...]:
    """Return the inputs of a study, in their order; none where it has a single one."""
    told: list[Mapping[str, object]] = definition.study.get("inputs") or []
    weights = {str(one["name"]): float(str(one["weight"])) for one in told}
    total = fsum(weights.values())
    return tuple(
        MixedInput(name, weight / total, _target(definition.metrics[1:], name)) for name, weight in weights.items()
    )


def _target(metrics: tuple[Metric, ...], name: str) -> Metric:
    return next(metric for metric in metrics if metric.name.endswith(f"[{name}]"))
