"""Sweep: vary one or two parameters and keep the others fixed at a base configuration.

All values run in interleaved rounds, so that the machine's drift cancels, and each is compared with the base in the
same rounds. Other values are therefore another sweep: they have no rounds in common with the earlier runs of the base.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log
from statistics import fmean, median
from typing import Any

from autotune.comparison.findings import standings_of
from autotune.comparison.round_table import RoundTable, Side
from autotune.comparison.rounds import ComparisonRounds
from autotune.comparison.scaling import ScalingPoint, ScalingVariants
from autotune.coordination.run_manager import RunManager
from autotune.errors import StudyFileError
from autotune.formatting import UNSET, configuration_text, value_text
from autotune.records.series import Series
from autotune.statistics import signed_rank
from autotune.statistics.ratio_words import Interval, ends, times
from autotune.statistics.verdict import middle_ratio
from autotune.storage.study_store import StudyStore
from autotune.studyfile import ScalingSection, StudyFile
from launchers.software.digest import text_digest
from objectives.base import Metric
from spaces import Configuration, Space, Value
from spaces.parameters.errors import did_you_mean

# A parameter with more values is thinned out to this number, unless the user names the values.
_MOST_VALUES = 12


@dataclass(frozen=True)
class Leader:
    """The best value of the second parameter of a sweep at one value of the first.

    Attributes:
        place: The value of the first parameter, in words.
        best: The best value of the second, in words.
        second: The second best; None if no other has been measured.
        ratio: How many times better the best is than the second best, in the rounds where both ran.
    """

    place: str
    best: str
    second: str | None
    ratio: Interval | None

    @property
    def is_clear(self) -> bool:
        """Whether it is better beyond the noise."""
        return self.ratio is not None and self.ratio[1] > 1.0

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {**vars(self), "ratio": self.ratio and list(self.ratio), "is_clear": self.is_clear}

    def sentence(self, metric: Metric) -> str:
        """Return a sentence: `at np=4: software=own is best, 1.500 times as fast as software=site (1.412 to 1.603)`."""
        if self.second is None or self.ratio is None:
            return f"at {self.place}: only {self.best} has a value"
        interval = f"({ends(self.ratio, metric)})"
        ratio = f"{times(self.ratio[0], metric, '.3f')} {self.second} {interval}"
        if self.is_clear:
            return f"at {self.place}: {self.best} is best, {ratio}"
        return f"at {self.place}: {self.best} and {self.second} do not differ beyond the noise; {self.best} is {ratio}"


def leaders(
    table: RoundTable, groups: Mapping[str, Sequence[tuple[str, int]]], metric: Metric, confidence: float
) -> tuple[Leader, ...]:
    """Return the leader of each group, except where the two best have too few rounds in common for an interval.

    Args:
        table: The runs.
        groups: The labels and sides that compete, by place.
        metric: The metric.
        confidence: The confidence of the intervals.
    """
    found = []
    for place, competitors in groups.items():
        sides = [(label, side) for label, side in competitors if table.values(side)]
        ranked = sorted(sides, key=lambda one: fmean(map(log, table.undisturbed(one[1]).values())))
        if metric.direction == "maximize":
            ranked.reverse()
        if len(ranked) == 1:
            found.append(Leader(place, ranked[0][0], None, None))
        elif ranked:
            (best, first), (second, other) = ranked[:2]
            ratio = table.ratio(other, first, confidence)
            if ratio is not None:
                found.append(Leader(place, best, second, ratio))
    return tuple(found)


@dataclass(frozen=True)
class Request:
    """The options of a sweep.

    Attributes:
        over: The parameters to vary, with the texts of their values; None for all values.
        fixed: The texts of values for other parameters, in place of those of the base.
        repeats: The number of rounds.
        base_name: The name of the base, such as `default`.
    """

    over: Mapping[str, Sequence[str] | None]
    fixed: Mapping[str, str]
    repeats: int
    base_name: str = "default"


@dataclass(frozen=True)
class SweepPoint:
    """One combination of values of a sweep.

    Attributes:
        values: The values of the swept parameters; None for unset.
        runs: The number of runs with a value.
        value: The base's value times the ratio to it, so the machine's drift cancels; in the metric's unit.
        low: The lower end of its interval; None with too few runs.
        high: The upper end.
        speed_up: How many times better it is than the base, with the interval.
        is_sure: Whether it is better at the confidence of all values together.
        is_base: Whether it is the base.
        why: Why it has no value: a rule that the values break, or a failure.
        broken: The study's limits that the runs break, with the measured values.
    """

    values: Mapping[str, Value | None]
    runs: int = 0
    value: float | None = None
    low: float | None = None
    high: float | None = None
    speed_up: Interval | None = None
    is_sure: bool = False
    is_base: bool = False
    why: str = ""
    broken: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The swept parameters with their values."""
        return label_of(self.values)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        speed_up = self.speed_up and list(self.speed_up)
        return {**vars(self), "values": dict(self.values), "speed_up": speed_up, "broken": list(self.broken)}


@dataclass(frozen=True)
class Sweep:
    """The result of a sweep.

    Attributes:
        over: The parameters that vary.
        base: The configuration that fixes the others.
        base_name: The name of the base, such as `default`.
        base_value: The base's median value; None if it has none.
        metric: The metric.
        confidence: The confidence of the intervals.
        rounds: The number of rounds.
        compared: The number of configurations compared with the base, including those that fail.
        points: The points, in the order of the values.
        leaders: With two parameters, the best value of the second at each value of the first.
        base_broken: The limits that the base's runs break.
        scaling: Speed-up and efficiency, if the number of processes was swept.
    """

    over: tuple[str, ...]
    base: Configuration
    base_name: str
    base_value: float | None
    metric: Metric
    confidence: float
    rounds: int
    compared: int
    points: tuple[SweepPoint, ...]
    leaders: tuple[Leader, ...] = ()
    base_broken: tuple[str, ...] = ()
    scaling: tuple[ScalingPoint, ...] = ()

    @property
    def measured(self) -> tuple[SweepPoint, ...]:
        """The points that have a value."""
        return tuple(point for point in self.points if point.value is not None)

    @property
    def best(self) -> SweepPoint | None:
        """The best point that keeps the limits and is better than the base beyond the noise; None without such a point.

        If the base breaks a limit, every point that keeps the limits is better than it.
        """
        keeping = [point for point in self.measured if point.speed_up is not None and not point.broken]
        better = [point for point in keeping if self.base_broken or (point.speed_up and point.speed_up[1] > 1.0)]
        return max(better, key=lambda point: (point.speed_up or (0.0,))[0], default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        return {
            "over": list(self.over),
            "base": dict(self.base),
            "base_name": self.base_name,
            "base_value": self.base_value,
            "base_broken": list(self.base_broken),
            "metric": self.metric.name,
            "unit": self.metric.unit,
            "confidence": self.confidence,
            "rounds": self.rounds,
            "points": [point.to_dict() for point in self.points],
            "best": self.best and dict(self.best.values),
            "leaders": [leader.to_dict() for leader in self.leaders],
            "scaling": [point.to_dict() for point in self.scaling],
        }


def sweep(  # noqa: PLR0913  by keyword
    store: StudyStore,
    manager: RunManager,
    study: StudyFile,
    *,
    request: Request,
    variants: "Variants",
    live: Callable[[Sweep], str],
) -> Sweep:
    """Run every variant in `request.repeats` rounds, including those of an earlier call; `live` draws the results."""
    standings = standings_of(store, study.repeats.statistic)
    sides = variants.sides(request.base_name)
    both = (sorted(variants.base.items()), sorted(repr(sorted(side.configuration.items())) for side in sides))
    series = Series.sweep(text_digest(repr(both)))
    confidence, compared, scaled = study.verdict.confidence, variants.compared, variants.scaled
    levels = (confidence, _bonferroni_level(compared, confidence))

    def result(table: RoundTable) -> Sweep:
        broken = [
            tuple(map(str, standings.limits.breaches_in(table.runs_of(side)))) for side in range(len(table.sides))
        ]
        points = tuple(
            _point(table, point, configuration, standings.metric, levels, broken)
            for point, configuration in variants.points
        )
        values = table.values(0).values()
        return Sweep(
            tuple(request.over),
            variants.base,
            request.base_name,
            median(values) if values else None,
            standings.metric,
            confidence,
            request.repeats,
            compared,
            points,
            leaders(table, variants.rivals(table, broken), standings.metric, confidence),
            broken[0],
            () if scaled is None else scaled.points(table, store.definition.metrics, confidence),
        )

    blocks = ComparisonRounds(
        store,
        manager,
        standings,
        series,
        sides,
        study.sampler.seed,
        series.kind.label,
        f"sweeping {' and '.join(request.over)}",
        # Without a measured default, check the answers against that of the base.
        other_workload=standings.baseline is None,
        live=lambda table: live(result(table)),
    )
    table = blocks.run_until(request.repeats)
    for line in () if scaled is None else scaled.remarks(table):
        manager.display.line(line)
    return result(table)


@dataclass(frozen=True)
class Variants:
    """The points to measure.

    Attributes:
        base: The configuration to compare with.
        points: The points with their configurations; an invalid point has None and its `why` says why.
        scaled: The configurations by the number of processes, if the sweep varies that number.
    """

    base: Configuration
    points: tuple[tuple[SweepPoint, Configuration | None], ...]
    scaled: ScalingVariants | None = None

    @classmethod
    def of(
        cls, space: Space, request: Request, base: Configuration, section: ScalingSection | None = None
    ) -> "Variants":
        """Return the variants of the base; `section` names the parameter that counts processes.

        Raises:
            StudyFileError: The space does not have the parameters or values, or the base is not valid.
        """
        both = sorted(request.over.keys() & request.fixed.keys())
        if both:
            msg = f"{', '.join(both)}: swept, so it cannot be fixed; leave it out of --over or of --set"
            raise StudyFileError(msg)
        fixed = {name: _value(space, name, text) for name, text in request.fixed.items()}
        base = _with(space, base, fixed)
        if not space.contains(base):
            msg = f"the {request.base_name} configuration with these values is not valid: "
            raise StudyFileError(msg + "; ".join(space.violations(base)))
        domains = [_values(space, name, texts, base.get(name)) for name, texts in request.over.items()]
        points = []
        for values in itertools.product(*domains):
            swept = dict(zip(request.over, values, strict=True))
            configuration = _with(space, base, swept)
            why = "; ".join(space.violations(configuration))
            point = SweepPoint(swept, is_base=dict(configuration) == dict(base), why=why)
            points.append((point, None if why else configuration))
        if section is None or list(request.over) != [section.processes]:
            return cls(base, tuple(points))
        valid = [configuration for _, configuration in points if configuration is not None]
        return cls(base, tuple(points), ScalingVariants.of(section, space, base, valid))

    @property
    def compared(self) -> int:
        """The number of configurations that are compared with the base."""
        return sum(configuration is not None and not point.is_base for point, configuration in self.points)

    def sides(self, base_name: str) -> tuple[Side, ...]:
        """Return what runs: the base, every other valid point, and the larger work of weak scaling."""
        label = next((point.label for point, _ in self.points if point.is_base), base_name)
        others = [
            Side(point.label, configuration)
            for point, configuration in self.points
            if configuration is not None and not point.is_base
        ]
        sides = (Side(label, self.base), *others)
        known = [dict(side.configuration) for side in sides]
        larger = () if self.scaled is None else self.scaled.weak.values()
        return (*sides, *(Side(configuration_text(one), one) for one in larger if dict(one) not in known))

    def rivals(self, table: RoundTable, broken: Sequence[Sequence[str]]) -> dict[str, list[tuple[str, int]]]:
        """Return the labels and sides that share a value of the first of two parameters, by that value.

        Sides that break a limit are left out; `broken` has the limits that each side breaks.
        """
        groups: dict[str, list[tuple[str, int]]] = {}
        for point, configuration in self.points:
            first, *others = ({name: value} for name, value in point.values.items())
            side = None if configuration is None else table.side_of(configuration)
            if others and side is not None and not broken[side]:
                groups.setdefault(label_of(first), []).append((label_of(others[0]), side))
        return {place: rivals for place, rivals in groups.items() if len(rivals) > 1}


def label_of(values: Mapping[str, Value | None]) -> str:
    """Return parameters with their values, as in `np=4 blas=unset`."""
    return " ".join(f"{name}={value_text(value)}" for name, value in values.items())


def _point(  # noqa: PLR0913, PLR0917  what a point is read from
    table: RoundTable,
    point: SweepPoint,
    configuration: Configuration | None,
    metric: Metric,
    levels: tuple[float, float],
    broken: Sequence[tuple[str, ...]],
) -> SweepPoint:
    """Return a point with its measurements; `levels` are the confidence of one value and of all values together."""
    confidence, level = levels
    side = None if configuration is None else table.side_of(configuration)
    if side is None:
        return point
    runs, failures, reference = len(table.values(side)), table.failures(side), table.undisturbed(0)
    why = failures[-1] if failures and not runs else ""
    known = {**vars(point), "runs": runs, "why": why, "broken": broken[side]}
    pairs = table.pairs(0, side)
    if not pairs:
        return SweepPoint(**known)
    base = median(reference.values())
    if side == 0:
        return SweepPoint(**known | {"value": base, "low": base, "high": base, "speed_up": (1.0, 1.0, 1.0)})
    interval = table.ratio(0, side, confidence)
    ratios = interval or (middle_ratio(pairs, metric),)
    values = [base * factor if metric.direction == "maximize" else base / factor for factor in ratios]
    if interval is None:
        return SweepPoint(**known | {"value": values[0]})
    surely = table.ratio(0, side, level)
    is_sure = surely is not None and surely[1] > 1.0
    found = {"value": values[0], "low": min(values), "high": max(values), "speed_up": interval, "is_sure": is_sure}
    return SweepPoint(**known | found)


def _bonferroni_level(values: int, confidence: float) -> float:
    """Return the confidence that each of several values needs for the confidence of all together (Bonferroni, 1936)."""
    return max(confidence, 1.0 - 2.0 * (1.0 - confidence) / max(values, 1))


def _with(space: Space, base: Configuration, values: Mapping[str, Value | None]) -> dict[str, Value]:
    """Return the base with other values; None removes a parameter.

    Parameters that no longer exist with the new values are removed, and those that begin to exist get their defaults.
    """
    changed = {name: value for name, value in {**base, **values}.items() if value is not None}
    defaults = {parameter.name: parameter.default for parameter in space.parameters}
    before = space.existing(base)
    # A parameter that appears or disappears may change others in turn, each at most once.
    for _ in space.parameters:
        now = space.existing(changed)
        new = {name: default for name in now - before - changed.keys() if (default := defaults[name]) is not None}
        kept = {name: value for name, value in changed.items() if name in now or name in values}
        if not new and len(kept) == len(changed):
            break
        changed = {**kept, **{name: default for name, default in new.items() if name not in values}}
    return changed


def _values(space: Space, name: str, texts: Sequence[str] | None, own: Value | None) -> list[Value | None]:
    if texts is not None:
        return list(dict.fromkeys(_value(space, name, text) for text in texts))
    parameter = _parameter(space, name)
    every: list[Value | None] = [*([None] if parameter.optional else []), *parameter.values]
    if len(every) <= _MOST_VALUES:
        return every
    last = len(every) - 1
    kept = {round(index * last / (_MOST_VALUES - 1)) for index in range(_MOST_VALUES)}
    return [value for index, value in enumerate(every) if index in kept or value == own]


def _value(space: Space, name: str, text: str) -> Value | None:
    """Return the value that a text stands for.

    Raises:
        StudyFileError: The space does not have the parameter, or the parameter does not have the value.
    """
    parameter = _parameter(space, name)
    # A conditional parameter is unset where its condition does not hold.
    may_be_unset = parameter.optional or parameter.when is not None
    if text == UNSET and may_be_unset:
        return None
    known: dict[str, Value] = {value_text(value): value for value in parameter.values}
    # Accept all digits, too, as tables for other programs write them.
    known |= {str(value): value for value in parameter.values}
    if text not in known:
        every = [*map(value_text, parameter.values), *([UNSET] if may_be_unset else [])]
        some = ", ".join(every[:_MOST_VALUES]) + (f", ... {every[-1]}" if len(every) > _MOST_VALUES else "")
        msg = f"{name}: {text!r} is not one of its values{did_you_mean(text, every)}: {some}"
        raise StudyFileError(msg)
    return known[text]


def _parameter(space: Space, name: str) -> Any:  # noqa: ANN401  one of the kinds of parameters
    parameters = {parameter.name: parameter for parameter in space.parameters}
    if name not in parameters:
        msg = f"the space has no parameter {name!r}{did_you_mean(name, parameters)}; known: {', '.join(parameters)}"
        raise StudyFileError(msg)
    return parameters[name]


def conclusion(sweep: Sweep) -> str:
    """Return the conclusion from a sweep in words."""
    metric, best = sweep.metric, sweep.best
    of = f"{sweep.confidence:.0%} intervals, {sweep.rounds} interleaved rounds"
    least = signed_rank.least_pairs(sweep.confidence)
    if sweep.rounds < least:
        return f"too few rounds for intervals: use --repeats {least}"
    keeps = " that keeps the limits" if any(point.broken for point in sweep.measured) else ""
    if best is None or best.speed_up is None:
        if sweep.base_broken:
            return f"no value keeps the limits ({of})"
        base = configuration_text(sweep.base)
        return f"no value{keeps} is better than the {sweep.base_name} beyond the noise ({base}; {of})"
    ratio = f"{times(best.speed_up[0], metric, '.3f')} the {sweep.base_name}"
    breaks = f", which breaks {'; '.join(sweep.base_broken)}" if sweep.base_broken else ""
    said = f"best{keeps}: {best.label}, {ratio} ({ends(best.speed_up, metric)}; {of}){breaks}"
    if sweep.base_broken or best.is_sure:
        return said
    by_chance = 1.0 - (0.5 + sweep.confidence / 2.0) ** sweep.compared
    needed = signed_rank.least_pairs(_bonferroni_level(sweep.compared, sweep.confidence))
    repeats = needed if sweep.rounds < needed else 2 * sweep.rounds
    return (
        f"{said}\nthis may be chance: with {sweep.compared} values that do nothing, one looks this good in "
        f"{by_chance:.0%} of sweeps (--repeats {repeats} gives more certainty)"
    )
