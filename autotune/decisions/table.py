"""The decision table of a study, a pure function of its stored runs.

A model of all runs predicts the best setting of each cell. In cells where this setting and the default were compared in
fresh interleaved runs, these runs alone decide: the default stays if the interval contains 1. In other cells the
default stays unless the model is sure, because its predictions are good on average but worse than the default in some
cells.
"""

import zlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from math import exp, expm1, log, log1p
from statistics import median
from typing import Any

from autotune.records.outcome import Outcome
from autotune.records.points import median_points, points_of
from autotune.records.series import Series
from autotune.records.study import Run, TrialRecord
from autotune.search.decisions.cell_model import Kernels, fit_cell_model
from autotune.search.decisions.choices import GUESS, Choice, choose_settings
from autotune.search.decisions.grid import Grid
from autotune.search.decisions.weights import Usage
from autotune.statistics import signed_rank
from autotune.statistics.false_coverage import intervals
from autotune.statistics.ratio_words import Interval
from autotune.statistics.slowdowns import Slowdowns
from autotune.storage.observation import Observation
from autotune.storage.readable_study import ReadableStudy
from autotune.studyfile import DecisionsSection
from objectives.base import Metric
from objectives.decision import Decision
from spaces import Space, Value


@dataclass(frozen=True)
class Shares:
    """How the time of a program is distributed over the cells.

    Attributes:
        by_cell: The share of the time with the default, by cell.
        outside: The share of the program's uses that are in no cell.
    """

    by_cell: tuple[float, ...]
    outside: float


def shares_of(
    usage: Usage, decisions: Sequence[Decision], defaults: Sequence[float | None], metric: Metric
) -> Shares | None:
    """Return the shares of the cells, whose default values are `defaults`; None without weights or known values."""
    if not usage.rows or not decisions:
        return None
    contexts: list[dict[str, Value]] = []
    cells: list[list[int]] = []
    for place, decision in enumerate(decisions):
        context = dict(decision.contexts)
        if not contexts or contexts[-1] != context:
            contexts.append(context)
            cells.append([])
        cells[-1].append(place)
    points = [[point for place in own if (point := decisions[place].point) is not None] for own in cells]
    counts, outside = usage.counts(contexts, points)
    times = [0.0] * len(decisions)
    for (group, column), count in counts.items():
        place = cells[group][column]
        value = defaults[place] or 0.0
        times[place] = 0.0 if value <= 0.0 else count / value if metric.direction == "maximize" else count * value
    whole = sum(times)
    return Shares(tuple(time / whole for time in times), outside) if whole > 0.0 else None


@dataclass(frozen=True)
class DecisionTable:
    """The decisions of all cells, by contexts and then by points.

    Attributes:
        metric: The metric.
        over: The contexts.
        points: The name of the points; None without points.
        confidence: The confidence of the intervals.
        decisions: The decisions.
        believed: The model's predictions, which are compared with the default in fresh runs.
        overall: How many times better the predictions are than the default, with the interval: the geometric mean over
            all cells or, with `shares`, how many times less time the program takes. None before fresh runs.
        defaults: The default's value in each cell; None where it has not run.
        shares: The shares of a program's time, if its weights are known.
    """

    metric: Metric
    over: tuple[str, ...]
    points: str | None
    confidence: float
    decisions: tuple[Decision, ...] = ()
    believed: tuple[Decision, ...] = ()
    overall: Interval | None = None
    defaults: tuple[float | None, ...] = ()
    shares: Shares | None = None

    @property
    def changed(self) -> list[Decision]:
        """The decisions for another setting than the default."""
        return [decision for decision in self.decisions if not decision.is_default]

    @property
    def proven(self) -> tuple[Decision, ...]:
        """The decisions to write for a program: the default stays in cells without a comparison in fresh runs."""
        return tuple(one if one.is_confirmed else replace(one, chosen=one.default) for one in self.decisions)

    def sentences(self) -> list[str]:
        """Return sentences on the changed cells, their gain, and cells that were not compared in fresh runs."""
        cells = len(self.decisions)
        said = [f"{len(self.changed)} of {cells} cells are better with another setting than the default"]
        if self.overall is not None:
            ratio, low, high = self.overall
            what = "over all cells" if self.shares is None else "over all uses of the program, by time"
            mean = ", geometric mean" if self.shares is None else ""
            said.append(
                f"{what}: {ratio:.3f} times better than the default{mean} "
                f"({self.confidence:.0%} interval {low:.3f} to {high:.3f})"
            )
        if self.shares is not None:
            of_changed = sum(
                share for one, share in zip(self.decisions, self.shares.by_cell, strict=True) if not one.is_default
            )
            said.append(
                f"these cells take {of_changed:.1%} of the program's time in all cells; "
                f"{self.shares.outside:.1%} of its uses are in no cell"
            )
        if any(not decision.pairs for decision in self.changed):
            said.append("cells without pairs are decided by the model of all runs, not by fresh runs")
        return said

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON-able form."""
        overall = None if self.overall is None else dict(zip(("ratio", "low", "high"), self.overall, strict=True))
        shares = [None] * len(self.decisions) if self.shares is None else self.shares.by_cell
        cells = [
            asdict(decision)
            | {"point": _whole(decision.point), "is_default": decision.is_default, "confirmed": decision.is_confirmed}
            | {"default_value": value, "share": share}
            for decision, value, share in zip(self.decisions, self.defaults, shares, strict=True)
        ]
        outside = None if self.shares is None else self.shares.outside
        return {
            "over": list(self.over),
            "points": self.points,
            "overall": overall,
            "outside": outside,
            "cells": cells,
        }


def decision_table(store: ReadableStudy, section: DecisionsSection) -> DecisionTable:
    """Return the table of a study from all its runs so far; it is empty until enough runs have ended."""
    definition = store.definition
    study = definition.study_file
    verdict = study.verdict
    over, metric = tuple(section.over), definition.target
    table = DecisionTable(metric, over, section.points, verdict.confidence)
    space = Space.from_dict(definition.space)
    seed = study.sampler.seed
    believed, sure = _decide_by_model(Grid(space, over), store.trials(), metric, seed, (GUESS, verdict.confidence))
    if not believed:
        return table
    runs = store.runs()
    fresh = FreshPairs(believed, sure, [run for run in runs if run.series.kind is CELL_KIND], metric)
    defaults = default_values(believed, runs, metric)
    shares = shares_of(Usage(tuple(section.rows), section.points), believed, defaults, metric)
    return replace(
        table,
        decisions=fresh.decide(verdict.confidence),
        believed=believed,
        overall=fresh.overall(verdict.confidence, shares),
        defaults=defaults,
        shares=shares,
    )


def table_of(store: ReadableStudy) -> DecisionTable | None:
    """Return the table of a study; None for a study that looks for a winner, or before enough runs have ended."""
    section = store.definition.study_file.decisions
    table = None if section is None else decision_table(store, section)
    return table if table is not None and table.decisions else None


CELL_KIND = Series.cell("").kind


def cell_series(contexts: Mapping[str, Value]) -> Series:
    """Return the series that compares settings with the default in a context."""
    return Series.cell(f"{zlib.crc32(repr(sorted(contexts.items())).encode()):08x}")


def _decide_by_model(
    grid: Grid, trials: Sequence[TrialRecord], metric: Metric, seed: int, confidences: Sequence[float]
) -> list[tuple[Decision, ...]]:
    """Return the model's decisions of every cell for each confidence; empty before there are enough runs."""
    ended = [trial for trial in trials if trial.runs]
    rows = grid.space.indices([trial.configuration for trial in ended])
    valid = grid.space.valid_indices(rows)
    observations = [_observation(trial, metric) for trial, there in zip(ended, valid, strict=True) if there]
    sign = -1.0 if metric.direction == "maximize" else 1.0
    cell_model = fit_cell_model(grid, rows[valid], observations, sign, Kernels(seed))
    if cell_model is None:
        return [()] * len(confidences)
    return [_decisions(grid, choose_settings(cell_model, rows[valid], confidence)) for confidence in confidences]


def _decisions(grid: Grid, chosen: Sequence[Choice]) -> tuple[Decision, ...]:
    defaults = grid.configurations(grid.defaults)
    return tuple(
        Decision(
            grid.contexts[choice.context],
            choice.point,
            defaults[choice.context] if choice.is_default else grid.configurations(choice.row[None, :])[0],
            defaults[choice.context],
            exp(choice.gain),
            exp(choice.low),
            exp(choice.high),
        )
        for choice in chosen
    )


def _observation(trial: TrialRecord, metric: Metric) -> Observation:
    if not trial.complete:
        return Observation()
    values = trial.measured(metric.name)
    complete = [outcome.details for outcome in trial.outcomes if outcome.complete]
    return Observation(sorted(values)[len(values) // 2], runs=len(values), points=median_points(complete))


@dataclass(frozen=True)
class FreshPairs:
    """The decisions from fresh rounds of predicted settings and the default.

    Attributes:
        believed: The predictions that are compared.
        sure: The model's decisions for cells without fresh runs.
        runs: The fresh runs.
        metric: The metric.
    """

    believed: tuple[Decision, ...]
    sure: tuple[Decision, ...]
    runs: Sequence[Run]
    metric: Metric

    def decide(self, confidence: float) -> tuple[Decision, ...]:
        """Return the decisions; a compared prediction is used only if it is better beyond the noise."""
        compared = [place for place, samples in enumerate(self._samples) if samples]
        found = intervals([list(self._samples[place].values()) for place in compared], confidence)
        decided = list(self.sure)
        for place, interval in zip(compared, found, strict=True):
            before, pairs = self.believed[place], len(self._samples[place])
            middle, low, high = (None, None, None) if interval is None else map(exp, interval)
            stays = low is not None and low > 1.0
            chosen = before.chosen if stays else before.default
            decided[place] = replace(before, chosen=chosen, ratio=middle, low=low, high=high, pairs=pairs)
        return tuple(decided)

    def overall(self, confidence: float, shares: Shares | None = None) -> Interval | None:
        """Return the gain of all predictions, including those that turned out to be wrong.

        It is the geometric mean over the cells or, with `shares`, how many times less time the program takes.
        """
        weights = [1.0 / len(self.believed)] * len(self.believed) if shares is None else shares.by_cell
        cells = [
            (samples, weight) for samples, weight in zip(self._samples, weights, strict=True) if samples and weight
        ]
        rounds = sorted(set.intersection(*(set(samples) for samples, _ in cells))) if cells else []
        if len(rounds) < signed_rank.least_pairs(confidence):
            return None
        if shares is None:
            gains = [sum(weight * samples[number] for samples, weight in cells) for number in rounds]
        else:
            gains = [-log1p(sum(weight * expm1(-samples[number]) for samples, weight in cells)) for number in rounds]
        middle, low, high = signed_rank.interval(gains, confidence)
        return exp(middle), exp(low), exp(high)

    @cached_property
    def _slowdowns(self) -> Slowdowns:
        outcomes: dict[frozenset[tuple[str, Value]], list[Outcome]] = defaultdict(list)
        for run in self.runs:
            outcomes[frozenset(run.configuration.items())].append(run.outcome)
        return Slowdowns.learnt(self.metric, outcomes.values())

    @cached_property
    def _samples(self) -> list[dict[int, float]]:
        """How many times better each prediction was than the default, by round, as logarithms.

        Rounds are counted back from the last round of a context, since later predictions have later rounds.
        """
        values: dict[tuple[Series, int, frozenset[tuple[str, Value]]], dict[float | None, float]] = {}
        for run in self.runs:
            if run.outcome.complete:
                key = (run.series, run.round, frozenset(run.configuration.items()))
                found = dict(points_of(run.outcome.details)) | {None: run.outcome.metrics[self.metric.name]}
                values[key] = {point: self._slowdowns.undisturbed(value, run.outcome) for point, value in found.items()}
        rounds: dict[Series, list[int]] = defaultdict(list)
        for series, number, _ in values:
            rounds[series].append(number)
        sign = -1.0 if self.metric.direction == "maximize" else 1.0
        samples = []
        for decision in self.believed:
            series, point = cell_series(decision.contexts), decision.point
            sides = [frozenset({**decision.contexts, **one}.items()) for one in (decision.default, decision.chosen)]
            last = max(rounds[series], default=0)
            pairs = {
                number - last: [values.get((series, number, side), {}).get(point, 0.0) for side in sides]
                for number in sorted(set(rounds[series]))
            }
            samples.append(
                {
                    number: sign * (log(first) - log(second))
                    for number, (first, second) in pairs.items()
                    if not decision.is_default and first > 0.0 and second > 0.0
                }
            )
        return samples


def _whole(point: float | None) -> float | None:
    """Return a point as an integer if it is whole."""
    return int(point) if point is not None and point.is_integer() else point


def gain_of(decisions: Sequence[Decision], weights: Sequence[float]) -> float:
    """Return the weighted sum of the logarithms of the ratios of decisions."""
    return sum(
        weight * log(decision.ratio) for decision, weight in zip(decisions, weights, strict=True) if decision.ratio
    )


def default_values(decisions: Sequence[Decision], runs: Sequence[Run], metric: Metric) -> tuple[float | None, ...]:
    """Return the median of the default's runs in each cell, of tuning and fresh pairs; None where it has not run."""
    values: dict[tuple[frozenset[tuple[str, Value]], float | None], list[float]] = {}
    for run in runs:
        if run.outcome.complete:
            key = frozenset(run.configuration.items())
            for point, value in points_of(run.outcome.details).items() or [(None, run.outcome.metrics[metric.name])]:
                values.setdefault((key, point), []).append(value)
    cells = ((frozenset({**one.contexts, **one.default}.items()), one.point) for one in decisions)
    return tuple(median(values[cell]) if cell in values else None for cell in cells)
