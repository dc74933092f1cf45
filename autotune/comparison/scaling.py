"""Scaling: speed-up and efficiency by the number of processes, from a sweep over that number.

Strong scaling shares the same work among more processes; in weak scaling the work grows with them. Speed-up and
efficiency are defined as usual (Hager & Wellein, Introduction to High Performance Computing for Scientists and
Engineers, 2010, chapter 5), relative to the smallest number of processes measured, from pairs of the same rounds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from autotune.comparison.round_table import RoundTable
from autotune.statistics.verdict import middle_ratio
from autotune.studyfile import ScalingSection
from objectives.base import Metric
from spaces import Configuration, Space

Kind = Literal["strong", "weak"]
Estimate = tuple[float, float | None, float | None]
"""A value and the ends of its interval, which are None for the reference itself and if there are too few rounds."""


@dataclass(frozen=True)
class ScalingPoint:
    """The measurements with one number of processes.

    Attributes:
        kind: Strong or weak scaling.
        processes: The number of processes.
        configuration: What ran.
        runs: The number of runs with a value.
        value: The median of the target metric.
        speed_up: The speed-up over the smallest number of processes.
        efficiency: The speed-up per process; 1 is ideal.
        others: The medians of the other metrics.
    """

    kind: Kind
    processes: int
    configuration: Configuration
    runs: int
    value: float
    speed_up: Estimate
    efficiency: Estimate
    others: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        lists = {"speed_up": list(self.speed_up), "efficiency": list(self.efficiency)}
        return {**vars(self), **lists, "configuration": dict(self.configuration), "others": dict(self.others)}


@dataclass(frozen=True)
class ScalingVariants:
    """The configurations to run, by the number of processes.

    Attributes:
        strong: Those with the same work.
        weak: Those whose work grows with the number of processes.
        remark: Why there are no configurations for weak scaling although the study file asks for them.
    """

    strong: Mapping[int, Configuration]
    weak: Mapping[int, Configuration]
    remark: str = ""

    @classmethod
    def of(
        cls, section: ScalingSection, space: Space, base: Configuration, swept: Sequence[Configuration]
    ) -> "ScalingVariants":
        """Return the `swept` configurations, and those with the same work per process as `base`."""
        strong = {int(one[section.processes]): one for one in swept if type(one.get(section.processes)) is int}
        if section.work is None:
            return cls(strong, {})
        values = {parameter.name: parameter.values for parameter in space.parameters}
        for name in (section.processes, section.work):
            if name not in base or not all(type(value) is int for value in values[name]):
                return cls(strong, {}, f"no weak scaling: {name} must be a whole number that is always set")
        weak = {}
        for count, configuration in strong.items():
            work, rest = divmod(int(base[section.work]) * count, int(base[section.processes]))
            scaled = {**configuration, section.work: work}
            if not rest and space.contains(scaled):
                weak[count] = scaled
        return cls(strong, weak)

    def remarks(self, table: RoundTable) -> list[str]:
        """Return the remarks of the runs, and the reason if weak scaling was not measured."""
        said = [f"{side.label}: {line}" for number, side in enumerate(table.sides) for line in table.remarks(number)]
        return [*said, self.remark] if self.remark else said

    def points(self, table: RoundTable, metrics: Sequence[Metric], confidence: float) -> tuple[ScalingPoint, ...]:
        """Return the scaling in the first of the `metrics`, with the medians of the others."""
        return (
            *_points("strong", self.strong, table, metrics, confidence),
            *_points("weak", self.weak, table, metrics, confidence),
        )


def _points(
    kind: Kind,
    configurations: Mapping[int, Configuration],
    table: RoundTable,
    metrics: Sequence[Metric],
    confidence: float,
) -> list[ScalingPoint]:
    sides = {count: table.side_of(configurations[count]) for count in sorted(configurations)}
    measured = {count: side for count, side in sides.items() if side is not None and table.values(side)}
    if not measured:
        return []
    target, others = metrics[0], metrics[1:]
    fewest, first = next(iter(measured.items()))
    points = []
    for count, side in measured.items():
        pairs = table.pairs(first, side)
        if not pairs:
            continue
        more, medians = count / fewest, table.medians(side)
        gain: Estimate = (1.0, None, None)
        if side != first:
            gain = table.ratio(first, side, confidence) or (middle_ratio(pairs, target), None, None)
        # A time has to be scaled by the larger work; a rate counts the work already.
        speed_up = _times(gain, more) if kind == "weak" and target.direction == "minimize" else gain
        points.append(
            ScalingPoint(
                kind,
                count,
                configurations[count],
                len(table.values(side)),
                medians[target.name],
                speed_up,
                _times(speed_up, 1.0 / more),
                {metric.name: medians[metric.name] for metric in others if metric.name in medians},
            )
        )
    return points


def _times(estimate: Estimate, factor: float) -> Estimate:
    value, low, high = estimate
    return value * factor, None if low is None else low * factor, None if high is None else high * factor
