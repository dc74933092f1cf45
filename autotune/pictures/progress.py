"""The chart of the best value so far over the trials of a study, beside the default."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, sqrt
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text, count_failures, quantity
from autotune.pictures.chart import Axis, Band, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import axis_of, better, count_noun, hover_text
from autotune.pictures.timeline import time_axis
from autotune.records.limit import breaks
from autotune.records.study import State, TrialRecord
from autotune.statistics.ratio_words import ratio_title
from autotune.statistics.standings import Standings
from objectives.base import FailureKind

if TYPE_CHECKING:
    from autotune.results.summary import Summary

MOST = 600
"""The largest number of trials that are drawn."""

_NORMAL_95 = 1.96
# With no more degrees of freedom than this the noise is an assumption, without repeats behind it.
_PRIOR_DEGREES = 1.0
_EDGE = 1.12


def progress(summary: "Summary") -> Chart | None:
    """Return every trial at its value, the best so far, and the default, by number and time; None before the first run.

    Recorded runs and those without a start have no time.
    """
    standings = summary.standings
    trials = sorted((trial for trial in summary.trials if trial.runs), key=lambda trial: trial.number)
    if not trials:
        return None
    improvements = _improvements(trials, standings)
    best = thin(improvements, MOST // 2, {0, len(improvements) - 1})
    winner = summary.winner
    special = {trial.number for trial in (*best, winner) if trial is not None}
    keep = {index for index, trial in enumerate(trials) if trial.number in special}
    drawn = thin(trials, MOST, keep)
    values = {trial.number: value for trial in drawn if (value := _value(trial, standings)) is not None}
    axis = axis_of(standings.metric, list(values.values())) if values else Axis(standings.metric.name, ticks=())
    points = _points(drawn, values, _edge(list(values.values()), standings), (standings, winner))
    by_number = {trial.number: float(trial.number) for trial in trials}
    panels = [Panel(Axis("trial", whole=True), axis, (*_lines(best, standings, by_number), *points))]
    if (found := None if summary.definition.replay or len(trials) < 2 else _times(trials)) is not None:
        across, by_time = found
        in_time = sorted(trials, key=lambda trial: by_time[trial.number])
        best_in_time = thin(_improvements(in_time, standings), MOST // 2)
        moved = (replace(mark, x=tuple(by_time[int(number)] for number in mark.x)) for mark in points)
        panels.append(Panel(across, axis, (*_lines(best_in_time, standings, by_time), *moved)))
    return Chart(
        "progress",
        "Best so far",
        _description(trials, best, summary) + thinning_note(len(drawn), len(trials)),
        tuple(panels),
        _table(best, standings),
        len(panels),
    )


def _times(trials: Sequence[TrialRecord]) -> tuple[Axis, dict[int, float]] | None:
    """Return the axis of time, and when the first run of each trial ended; None without the starts of these runs."""
    first = {trial.number: trial.runs[0] for trial in trials}
    began = {number: run.began_s for number, run in first.items() if run.began_s is not None}
    if len(began) < len(first):
        return None
    ended = {number: began[number] + run.outcome.usage.elapsed_s for number, run in first.items()}
    start_s = min(began.values())
    axis, length = time_axis(start_s, max(ended.values()))
    return axis, {number: (end_s - start_s) / length for number, end_s in ended.items()}


def _value(trial: TrialRecord, standings: Standings) -> float | None:
    """Return the value at which a trial is drawn: its value, its bound, or the last value before it stopped early."""
    match trial.state:
        case State.COMPLETE:
            return standings.value(trial)
        case State.CAPPED:
            return standings.bound_of(trial)
        case State.PAUSED:
            return trial.runs[-1].outcome.metrics.get(standings.metric.name)
        case _:
            return None


def _edge(values: Sequence[float], standings: Standings) -> float:
    """Return the value at which trials without a value are drawn: a little worse than the worst."""
    if not values:
        return 1.0
    return min(values) / _EDGE if standings.metric.direction == "maximize" else max(values) * _EDGE


def _improvements(trials: Sequence[TrialRecord], standings: Standings) -> list[TrialRecord]:
    """Return the complete trials that keep the limits and were better than all that come before and do, too."""
    improvements: list[TrialRecord] = []
    cost = standings.metric.cost
    for trial in trials:
        if not trial.complete or not standings.limits.keeps(trial.number):
            continue
        if not improvements or cost(standings.value(trial)) < cost(standings.value(improvements[-1])):
            improvements.append(trial)
    return improvements


def _lines(best: Sequence[TrialRecord], standings: Standings, places: Mapping[int, float]) -> list[Mark]:
    """Return the lines of the best so far and of the default; `places` has the position of each trial."""
    marks: list[Mark] = []
    effects, baseline = standings.effects, standings.baseline
    ends = (min(places.values()), max(places.values()))
    if best:
        x = (*(places[trial.number] for trial in best), ends[1])
        y = [standings.value(trial) for trial in best]
        if effects.degrees > _PRIOR_DEGREES:
            factors = [exp(_NORMAL_95 * sqrt(effects.variance(effects.count(trial.number)))) for trial in best]
            low = [value / factor for value, factor in zip(y, factors, strict=True)]
            high = [value * factor for value, factor in zip(y, factors, strict=True)]
            marks.append(Band(Role.BAND, "range of the best (95%)", x, (*low, low[-1]), (*high, high[-1]), steps=True))
        marks.append(Line(Role.BEST, "best so far", x, (*y, y[-1]), steps=True))
    if baseline is not None:
        value = standings.value(baseline)
        marks.append(Line(Role.BASELINE, "default", ends, (value, value)))
    return marks


@dataclass(frozen=True)
class _Kind:
    role: Role
    label: str


_COMPLETE = _Kind(Role.TRIAL, "trial")
_CAPPED = _Kind(Role.CAPPED, "capped, at its bound")
_PAUSED = _Kind(Role.PAUSED, "left early, at its last step")
# The role is shared with PAUSED, since no study has both limits and trials that stop early.
_BREAKS = _Kind(Role.PAUSED, "breaks a limit")
_INVALID = _Kind(Role.INVALID, "invalid result, no value")
_FAILED = _Kind(Role.FAILED, "failed, no value")
_WINNER = _Kind(Role.WINNER, "winner")


def _kind(trial: TrialRecord, winner: TrialRecord | None, standings: Standings) -> _Kind:
    if trial.failure is not None:
        return _INVALID if trial.failure.failure is FailureKind.INVALID_RESULT else _FAILED
    if trial is winner and trial.complete:
        return _WINNER
    if not standings.limits.keeps(trial.number):
        return _BREAKS
    return {State.CAPPED: _CAPPED, State.PAUSED: _PAUSED}.get(trial.state, _COMPLETE)


def _points(
    drawn: Sequence[TrialRecord],
    values: dict[int, float],
    edge: float,
    about: tuple[Standings, TrialRecord | None],
) -> list[Points]:
    standings, winner = about
    kinds = [_kind(trial, winner, standings) for trial in drawn]
    points = []
    for kind in (_CAPPED, _PAUSED, _BREAKS, _COMPLETE, _INVALID, _FAILED, _WINNER):
        mine = [trial for trial, its in zip(drawn, kinds, strict=True) if its is kind]
        if mine:
            x = tuple(float(trial.number) for trial in mine)
            y = tuple(values.get(trial.number, edge) for trial in mine)
            hover = tuple(_hover_text(trial, standings) for trial in mine)
            points.append(Points(kind.role, kind.label, x, y, hover))
    return points


def _hover_text(trial: TrialRecord, standings: Standings) -> str:
    if trial.complete:
        broken = breaks(standings.limits.breaches(trial.number))
        note = f"{quantity(standings.value(trial), standings.metric)}, {broken}" if broken else ""
        return hover_text(trial, standings, note)
    if trial.failure is not None and trial.failure.failure is not None:
        return hover_text(trial, standings, f"{trial.failure.failure.value}: {trial.message[:160]}")
    if trial.state is State.CAPPED:
        worse = "under" if standings.metric.direction == "maximize" else "over"
        return hover_text(trial, standings, f"capped: {worse} {quantity(standings.bound_of(trial), standings.metric)}")
    last = trial.runs[-1]
    value = quantity(last.outcome.metrics[standings.metric.name], standings.metric)
    return hover_text(trial, standings, f"{value} at step {last.steps} of {last.of}")


def _description(trials: Sequence[TrialRecord], best: Sequence[TrialRecord], summary: "Summary") -> str:
    standings = summary.standings
    metric = standings.metric
    without = ", ".join(count_failures(standings.counts))
    after = f" Without a value: {without}." if without else ""
    if not best:
        what = "keep the limits" if standings.measured else "give a valid measurement"
        return f"{count_noun(len(trials), 'trial')} did not {what}.{after}"
    text = f"The best {metric.name} so far ({better(metric)}) over {count_noun(len(trials), 'trial')}"
    baseline, last = standings.baseline, best[-1]
    value = quantity(standings.value(last), metric)
    speed_up = standings.speed_up(last)
    if baseline is None or speed_up is None:
        return f"{text}: {value} at trial {last.number}; the default gave no value.{after}"
    start = quantity(standings.value(baseline), metric)
    if last.number == baseline.number:
        return f"{text}: no trial was better than the default's {start}.{after}"
    until = f"from {start} (the default) to {value} at trial {last.number} in the runs of tuning"
    doubt = "" if speed_up.confirmed else " The best of many runs of tuning looks better than it is."
    return f"{text}: {until}; it {'is ' * speed_up.confirmed}{speed_up.words(metric)}.{doubt}{after}"


def _table(best: Sequence[TrialRecord], standings: Standings) -> Table:
    metric = standings.metric
    rows = []
    for trial in best:
        speed_up = standings.speed_up(trial)
        figures = (trial.number, float(f"{standings.value(trial):.6g}"), len(trial.runs))
        rows.append((*figures, None if speed_up is None else speed_up.text(), configuration_text(trial.configuration)))
    value = Axis(metric.name, metric.unit).text
    return Table(("trial that was the best so far", value, "runs", ratio_title(metric), "configuration"), tuple(rows))
