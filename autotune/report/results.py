"""The results of a study as sections: figures at the top, winner and default, ablation, inputs, failures, cost."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from statistics import median
from typing import Any

from autotune.comparison.findings import Ablation, OptionEffect, alongside, changes
from autotune.decisions.ranges import columns_of, rows_of
from autotune.decisions.table import DecisionTable
from autotune.formatting import as_sentence, configuration_text, count_failures, value_text
from autotune.pictures.chart import Axis, Cell, Table
from autotune.pictures.labels import count_noun
from autotune.records.study import Run, State, TrialRecord
from autotune.report.section import Figures, Part, Section, Words
from autotune.results.disturbed_runs import disturbance_sentence
from autotune.results.noise import noise_sentence
from autotune.results.summary import Summary
from autotune.statistics.ratio_words import Interval, ratio_title
from objectives.base import Metric
from spaces import Configuration

_MESSAGES = 4
_LETTERS = 400
_BYTES = "B"


def figures(summary: Summary, runs: Sequence[Run]) -> tuple[tuple[str, str], ...]:
    """Return the few figures at the top, as (label, value)."""
    standings, winner = summary.standings, summary.winner
    metric = standings.metric
    rows = []
    verdict = summary.present_verdict
    if verdict is not None and verdict.known:
        middle, low, high = verdict.interval(metric)
        interval = f"{verdict.confidence:.0%} interval {low:.3f} to {high:.3f}"
        rows.append((ratio_title(metric), f"{middle:.3f} ({interval})"))
    if verdict is not None:
        rows.append((f"winner, {metric.name}", summary.value_text(standings.trials[verdict.winner])))
    elif winner is not None:
        rows.append((f"best so far, {metric.name}", summary.value_text(winner)))
    if standings.baseline is not None:
        rows.append((f"default, {metric.name}", summary.value_text(standings.baseline)))
    rows.append(("trials", _trials(summary)))
    if summary.on_limits.limits:
        rows.append(("limits", summary.limits_text()))
    rows.append(("runs", f"{len(runs):,}"))
    if when := _when(runs):
        rows.append(("measured", when))
    if noise := noise_sentence(standings):
        rows.append(("noise", noise))
    if disturbance := disturbance_sentence(summary.taken):
        rows.append(("disturbance", disturbance))
    simulated = ", simulated" if summary.definition.replay else ""
    rows.append(("cost", f"{summary.ledger.spent / 3600.0:.3g} core-hours{simulated}"))
    rows.extend(summary.ledger.used)
    if summary.ledger.pays_after is not None and not summary.definition.replay:
        rows.append(("paid for after", count_noun(summary.ledger.pays_after, "production run")))
    return tuple(rows)


def _when(runs: Sequence[Run]) -> str:
    """Return in words when the first and the last run began, and the time between, including idle times."""
    times = []
    for run in runs:
        with suppress(ValueError):  # stored by another program
            times.append(datetime.fromisoformat(run.started).replace(tzinfo=UTC))
    if not times:
        return ""
    first, last = min(times), max(times)
    began, ended = (f"{time:%Y-%m-%d %H:%M}" for time in (first, last))
    hours, minutes = divmod(max(1, round((last - first).total_seconds() / 60.0)), 60)
    lasted = f"{hours} h {minutes:02} min" if hours else f"{minutes} min"
    return f"{began} to {ended} UTC ({lasted})" if began != ended else f"{began} UTC"


def _trials(summary: Summary) -> str:
    standings = summary.standings
    paused = sum(trial.state is State.PAUSED for trial in summary.trials)
    parts = [f"{len(standings.measured)} valid", *([f"{paused} left early"] if paused else [])]
    parts += count_failures(standings.counts)
    return f"{len(summary.trials)} ({', '.join(parts)})"


def findings(summary: Summary, table: DecisionTable | None = None) -> list[Section]:
    """Return the sections on the results; empty sections have no parts."""
    return [
        _winner(summary),
        _decisions(table),
        _tradeoff(summary),
        _ablation(summary),
        _inputs(summary),
        _failures(summary),
    ]


def _decisions(table: DecisionTable | None) -> Section:
    if table is None:
        return Section("decisions", "", ())
    about = "The setting to use in each cell; neighbouring cells with the same decision share a line"
    figure = Figures(about, Table(tuple(columns_of(table)), tuple(map(tuple, rows_of(table)))))
    return Section("decisions", "The decision table", (figure,))


def _winner(summary: Summary) -> Section:
    best, default = summary.winner, summary.standings.baseline
    if best is None:
        return Section("winner", "", ())
    if default is None or default.number == best.number:
        text = f"The configuration to use is {'the default' if default else f'that of trial {best.number}'}: "
        return Section("winner", "Configuration", (Words(text + configuration_text(best.configuration)),))
    sides: dict[str, Any] = {"default": default.configuration, f"trial {best.number}": best.configuration}
    if summary.simplified is not None:
        sides["simplified"] = summary.simplified.simplified or {}
    names = list(dict.fromkeys(name for configuration in sides.values() for name in configuration))
    changed = set(changes(best.configuration, default.configuration))
    rows: list[tuple[Cell, ...]] = [
        (
            name,
            *(value_text(configuration.get(name)) for configuration in sides.values()),
            "changed" if name in changed else "",
        )
        for name in sorted(names, key=lambda name: name not in changed)
    ]
    for metric in summary.definition.metrics:
        values = [_value_cell(summary, trial, metric) for trial in (default, best)]
        if any(values):
            unit = "MB" if metric.unit == _BYTES else metric.unit
            statistic = summary.standings.statistic if metric == summary.standings.metric else "median"
            rows.append((f"{Axis(metric.name, unit).text}, {statistic}", *values, *[""] * (len(sides) - 1)))
    title = "winner" if summary.present_verdict else "best so far"
    about = f"The {title} beside the default, with the values measured in tuning"
    return Section("winner", "Winner and default", (Figures(about, Table(("", *sides, " "), tuple(rows))),))


def _value_cell(summary: Summary, trial: TrialRecord, metric: Metric) -> str:
    values = trial.measured(metric.name)
    if not values:
        return ""
    # The value of the target metric is computed on logarithms: of two runs it is not the arithmetic middle.
    value = summary.standings.value(trial) if metric == summary.standings.metric else median(values)
    return f"{value / (1e6 if metric.unit == _BYTES else 1.0):.4g}"


def _tradeoff(summary: Summary) -> Section:
    front = summary.front
    if front is None or not front.points:
        return Section("tradeoff", "", ())
    columns = ("trial", *(Axis(metric.name, metric.unit).text for metric in front.metrics), "configuration")
    rows: tuple[tuple[Cell, ...], ...] = tuple(
        (
            point.trial,
            *(f"{value:.4g}" for value in point.values),
            configuration_text(summary.standings.trials[point.trial].configuration),
        )
        for point in front.points
    )
    about = f"Trials that no other beats in {front.of_them}"
    confirmed = [Words(f"In fresh runs, {verdict.sentence()}.") for verdict in summary.confirmed]
    return Section("tradeoff", "The trade-off", (Figures(about, Table(columns, rows)), *confirmed))


def _ablation(summary: Summary) -> Section:
    result, best = summary.ablation, summary.best
    if result is None or best is None or not result.effects:
        return Section("ablation", "", ())
    readings = result.readings(summary.standings.metric, summary.definition.metrics)
    parts: list[Part] = [_options(metric, one, named=bool(result.further)) for metric, one in readings]
    if result.winner != best.number:
        now = "is no longer the winner" if not result.further else "the weights no longer choose"
        parts.insert(0, Words(f"This ablation is of trial {result.winner}, which {now}."))
    if result.simplified is not None and result.over_winner is not None:
        text = "; ".join(_without(metric, one, named=bool(result.further)) for metric, one in readings)
        text = f"Without {', '.join(result.dropped)} it is {text}: {configuration_text(result.simplified)}"
        text += f"; but it breaks {', '.join(result.breaks)}" if result.breaks else ""
        parts.append(Words(text))
    return Section("ablation", "The effect of each option", tuple(parts))


def _options(metric: Metric, result: Ablation, *, named: bool) -> Figures:
    """Return a table with a row for each option; `named` adds the name of the metric."""
    subject = f"trial {result.winner}" if named else "winner"
    within = f"in {subject}" if named else "in the winner"
    columns = ("option", "default", subject, "alone on the default", within, "remark")
    rows = tuple(
        (
            effect.name,
            _values(effect, effect.default),
            _values(effect, effect.value),
            _beside(effect.alone, effect.alone_with),
            _beside(effect.within, effect.within_with),
            _remark(effect),
        )
        for effect in result.effects
    )
    rounds = count_noun(result.rounds, "interleaved round")
    ratios = f"in {metric.name}, ratios" if named else f"{ratio_title(metric)}s"
    about = f"The effect of each option of trial {result.winner}: {ratios}, {result.confidence:.0%} intervals, {rounds}"
    return Figures(about, Table(columns, rows))


def _without(metric: Metric, result: Ablation, *, named: bool) -> str:
    text = f"{_factor(result.over_winner)} times as good as {f'trial {result.winner}' if named else 'the winner'}, and "
    text += f"{_factor(result.over_default)} times as good as the default"
    return f"in {metric.name} {text}" if named else text


def _factor(interval: Interval | None) -> str:
    return "not measured" if interval is None else f"{interval[0]:.3f} ({interval[1]:.3f} to {interval[2]:.3f})"


def _beside(interval: Interval | None, others: Sequence[str]) -> str:
    return ", ".join(filter(None, (_factor(interval), alongside(others))))


def _values(effect: OptionEffect, configuration: Configuration) -> str:
    return ", ".join(value_text(configuration.get(name)) for name in effect.parameters)


def _remark(effect: OptionEffect) -> str:
    return "; ".join(filter(None, (effect.worth.value, effect.why)))


def _inputs(summary: Summary) -> Section:
    metric, parts = summary.standings.metric, []
    if summary.on_inputs:
        shares = tuple((one.name, f"{one.share:.3g}", _factor(one.interval)) for one in summary.on_inputs)
        about = "The winner against the default on each input of the mix, each interval by itself"
        parts.append(Figures(about, Table(("input", "share", ratio_title(metric)), shares)))
    if summary.verified:
        verdicts = tuple((one.name, one.sentence(metric)) for one in summary.verified)
        about = "The winner against the default on the inputs of weight 0, which were not used to find it"
        parts.append(Figures(about, Table(("input", "verdict"), verdicts)))
    return Section("inputs", "On each input", tuple(parts))


def _failures(summary: Summary) -> Section:
    rows: list[tuple[Cell, ...]] = []
    for kind, messages in _failure_messages(summary.trials).items():
        rows += [(kind, many, text[:_LETTERS], trial) for text, many, trial in messages[:_MESSAGES]]
        left = len(messages) - _MESSAGES
        if left > 0:
            rows.append((kind, sum(many for _, many, _ in messages[_MESSAGES:]), f"({left} other messages)", None))
    parts: tuple[Part, ...] = ()
    if rows:
        table = Table(("kind", "trials", "message", "first trial"), tuple(rows))
        parts = (Figures("Messages of failed trials", table),)
    return Section("failures", "Trials without a value", parts)


def _failure_messages(trials: Sequence[TrialRecord]) -> dict[str, list[tuple[str, int, int]]]:
    """Return each message with its number of trials and the first of them, by kind of failure, most frequent first."""
    messages: dict[str, Counter[str]] = defaultdict(Counter)
    first: dict[tuple[str, str], int] = {}
    for trial in trials:
        failure = trial.failure.failure if trial.failure else None
        if failure is not None:
            text = trial.message or "(no message)"
            messages[failure.value][text] += 1
            first.setdefault((failure.value, text), trial.number)
    return {
        kind: [(text, many, first[kind, text]) for text, many in count.most_common()]
        for kind, count in messages.items()
    }


def cost(summary: Summary) -> Section:
    """Return the section on what the study cost and saved, and on the forecast for more trials."""
    lines = summary.ledger.text().splitlines() if summary.ledger.spent > 0.0 else ()
    parts: list[Part] = [Words(as_sentence(line)) for line in lines]
    if summary.steps is not None and summary.steps[1]:
        made, whole = summary.steps
        parts.append(Words(f"{made:,} steps were trained; training every trial to its end would have taken {whole:,}."))
    if summary.warm is not None and summary.warm.proposals:
        parts.append(Words(f"Warm start: {summary.warm.sentence(summary.standings)}."))
    if summary.outlook is not None:
        parts.append(Words(f"Would more search pay? {summary.outlook.sentence()}."))
    return Section("cost", "Cost, and the gain of more trials", tuple(parts))
