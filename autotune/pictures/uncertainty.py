"""The charts of uncertainty: the pairs of the verdict, the noise over time, and disturbances by other processes."""

from collections.abc import Mapping
from math import exp, log
from typing import TYPE_CHECKING

from autotune.pictures.chart import Axis, Band, Cell, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import count_noun
from autotune.results.disturbed_runs import disturbance_sentence
from autotune.results.noise import noise_sentence
from autotune.statistics.ratio_words import ratio_title

if TYPE_CHECKING:
    from autotune.results.summary import Summary

_MOST = 600
# Half the width of a pair on its axis.
_HALF = 0.5


def pairs(summary: "Summary") -> Chart | None:
    """Return the ratio in each pair of runs of the verdict, with the interval; None without a verdict."""
    verdict, metric = summary.present_verdict, summary.standings.metric
    if verdict is None or not verdict.known:
        return None
    # If less is better, the ratio is that of the default to the winner, so more than 1 is always a gain.
    ratios = [exp(metric.cost(log(default)) - metric.cost(log(winner))) for default, winner in verdict.pairs]
    middle, low, high = verdict.interval(metric)
    x, ends = tuple(map(float, range(1, len(ratios) + 1))), (_HALF, len(ratios) + _HALF)
    unit = f" {metric.unit}" if metric.unit else ""
    hover = tuple(
        f"pair {number}: {ratio:.3f}\ndefault {default:.4g}{unit}, winner {winner:.4g}{unit}"
        for number, (ratio, (default, winner)) in enumerate(zip(ratios, verdict.pairs, strict=True), 1)
    )
    title = ratio_title(metric)
    marks: tuple[Mark, ...] = (
        Band(Role.BAND, f"interval ({verdict.confidence:.0%})", ends, (low, low), (high, high)),
        Line(Role.GUIDE, "no difference", ends, (1.0, 1.0)),
        Line(Role.BEST, "verdict", ends, (middle, middle)),
        Points(Role.WINNER, "a pair of runs", x, tuple(ratios), hover),
    )
    above = sum(ratio > 1.0 for ratio in ratios)
    text = (
        f"The {title} in each of {count_noun(len(ratios), 'fresh pair')} of runs, winner and default next to each "
        f"other: {above} of {len(ratios)} are above 1. The verdict: {summary.on_limits.sentence(verdict, metric)}."
    )
    columns = ("pair", f"default{unit and f' [{metric.unit}]'}", f"winner{unit and f' [{metric.unit}]'}", title)
    rows: list[tuple[Cell, ...]] = [
        (number, _figure(default), _figure(winner), round(ratio, 4))
        for number, (ratio, (default, winner)) in enumerate(zip(ratios, verdict.pairs, strict=True), 1)
    ]
    panel, table = Panel(Axis("pair", whole=True), Axis(title), marks), Table(columns, tuple(rows))
    return Chart("pairs", "Fresh pairs of runs", text, (panel,), table)


def noise(summary: "Summary") -> Chart | None:
    """Return the deviation of runs from the value of their configuration, by block of time; None before a repeat."""
    standings = summary.standings
    sentence = noise_sentence(standings)
    repeated = [trial for trial in standings.measured if len(trial.measured(standings.metric.name)) > 1]
    if not sentence or not repeated:
        return None
    metric = standings.metric
    runs = [
        (float(run.block), run.outcome.metrics[metric.name] / standings.value(trial) - 1.0, trial.number)
        for trial in repeated
        for run in trial.runs
        if run.outcome.complete and metric.name in run.outcome.metrics and standings.value(trial)
    ]
    drawn = thin(sorted(runs), _MOST, set())
    points = Points(
        Role.TRIAL,
        "run",
        tuple(block for block, _, _ in drawn),
        tuple(100.0 * off for _, off, _ in drawn),
        tuple(f"trial {number}: {off:+.1%}" for _, off, number in drawn),
    )
    drift = _drift(standings.effects.offsets) if standings.effects.drifts else ()
    text = "How far each run is from the value of its configuration, over the periods between runs of the default: "
    text += f"{sentence}."
    table = Table(("period", "runs", "least %", "most %"), tuple(_rows(runs)))
    axis = Axis("off the configuration's value", "%")
    return Chart(
        "noise",
        "Noise and drift",
        text + thinning_note(len(drawn), len(runs)),
        (Panel(Axis("period", whole=True), axis, (*drift, points)),),
        table,
    )


def disturbance(summary: "Summary") -> Chart | None:
    """Return the share of each run's time that other processes took, over the study; None if it is not known."""
    taken = summary.taken
    if not taken:
        return None
    kinds = ((Role.TRIAL, "a run that counts", False), (Role.PAUSED, "set aside", True))
    marks: list[Mark] = []
    drawn = thin(taken, _MOST, {index for index, one in enumerate(taken) if one.is_disturbed})
    for role, label, is_disturbed in kinds:
        those = [one for one in drawn if one.is_disturbed is is_disturbed]
        if those:
            hover = tuple(
                f"{one.purpose if one.trial is None else f'trial {one.trial}, {one.purpose}'}: {one.share:.1%}"
                for one in those
            )
            x, y = tuple(one.at_s / 60.0 for one in those), tuple(100.0 * one.share for one in those)
            marks.append(Points(role, label, x, y, hover))
    rows: list[tuple[Cell, ...]] = [
        (round(one.at_s / 60.0, 2), "" if one.trial is None else one.trial, one.purpose, round(100.0 * one.share, 2))
        for one in thin(taken, 200, set())
    ]
    text = f"The share of each run's time that other processes took: {disturbance_sentence(taken)}."
    return Chart(
        "disturbance",
        "Time taken by others",
        text + thinning_note(len(drawn), len(taken)),
        (Panel(Axis("time since the first run", "min"), Axis("taken by others", "%"), tuple(marks)),),
        Table(("minute", "trial", "purpose", "taken %"), tuple(rows)),
    )


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def _drift(offsets: Mapping[int, float]) -> tuple[Mark, ...]:
    """Return the line of the machine's drift, which all runs of a block share."""
    blocks = sorted(offsets)
    y = tuple(100.0 * (exp(offsets[block]) - 1.0) for block in blocks)
    return (Line(Role.BEST, "drift of the machine", tuple(map(float, blocks)), y, steps=True),)


def _rows(runs: list[tuple[float, float, int]]) -> list[tuple[Cell, ...]]:
    by_block: dict[float, list[float]] = {}
    for block, off, _ in runs:
        by_block.setdefault(block, []).append(100.0 * off)
    rows: list[tuple[Cell, ...]] = [
        (int(block), len(found), round(min(found), 2), round(max(found), 2))
        for block, found in sorted(by_block.items())
    ]
    return thin(rows, 200, set())
