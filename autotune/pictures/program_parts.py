"""The chart of the parts of the run time that a program measures itself, for the winner and the default."""

from collections.abc import Mapping
from statistics import median
from typing import TYPE_CHECKING

from autotune.pictures.chart import Axis, Bars, Chart, Mark, Panel, Role, Table
from autotune.pictures.labels import count_noun
from autotune.pictures.scales import short
from autotune.records.outcome import Outcome
from autotune.records.study import TrialRecord
from objectives.base import CYCLES, PARTS

if TYPE_CHECKING:
    from autotune.results.summary import Summary

_MOST = 9
_LETTERS = 24
# The distance between parts: two bars and a gap.
_APART = 2.6


def parts_of(trial: TrialRecord) -> dict[str, float]:
    """Return the median seconds of each part of a trial's program; empty if the program reports no parts."""
    told = [outcome.details.get(PARTS) for outcome in trial.outcomes if outcome.complete]
    known = [parts for parts in told if isinstance(parts, Mapping)]
    names = dict.fromkeys(name for parts in known for name in parts)
    return {name: median([parts[name] for parts in known if name in parts]) for name in names}


def whole_of(trial: TrialRecord) -> float:
    """Return the median seconds of a run, or of one cycle of a run, which the parts are parts of."""
    complete = [outcome for outcome in trial.outcomes if outcome.complete]
    return median([outcome.usage.elapsed_s / _cycles(outcome) for outcome in complete])


def _cycles(outcome: Outcome) -> int:
    return int(outcome.details.get(CYCLES, 1))


def parts(summary: "Summary") -> Chart | None:
    """Return the largest parts in seconds and as shares of the run; None if the program reports no parts."""
    best, default = summary.winner, summary.standings.baseline
    sides = [(Role.BASELINE, "default", default), (Role.WINNER, "winner", best if best is not default else None)]
    known = [
        (role, label, one)
        for role, label, one in sides
        if one is not None and one.complete and any(parts_of(one).values())
    ]
    if not known:
        return None
    seconds = {label: parts_of(one) for _, label, one in known}
    wholes = {label: max(whole_of(one), *seconds[label].values()) for _, label, one in known}
    names = sorted(
        dict.fromkeys(name for some in seconds.values() for name in some),
        key=lambda name: -max(some.get(name, 0.0) for some in seconds.values()),
    )
    drawn = [name for name in names if any(some.get(name, 0.0) > 0.0 for some in seconds.values())][:_MOST]
    ticks = tuple((_APART * index + _middle(len(known)), short(name, _LETTERS)) for index, name in enumerate(drawn))
    panels = []
    for title, axis, shares in (("seconds", Axis("time", "s"), False), ("share of the run", Axis("share", "%"), True)):
        marks: list[Mark] = []
        for place, (role, label, _) in enumerate(known):
            scale = 100.0 / wholes[label] if shares else 1.0
            values = tuple(scale * seconds[label].get(name, 0.0) for name in drawn)
            hover = tuple(
                f"{name}, {label}\n{seconds[label].get(name, 0.0):.4g} s, "
                f"{seconds[label].get(name, 0.0) / wholes[label]:.1%} of the run"
                for name in drawn
            )
            marks.append(Bars(role, label, tuple(_APART * index + place for index in range(len(drawn))), values, hover))
        panels.append(Panel(axis, Axis(ticks=ticks, reverse=True), tuple(marks), title))
    text = _description(seconds, names)
    if any(_cycles(outcome) > 1 for _, _, one in known for outcome in one.outcomes):
        text += " Seconds and shares are of one cycle of a run."
    return Chart("parts", "Where the time goes", text, tuple(panels), _table(seconds, wholes), 2)


def _middle(sides: int) -> float:
    return (sides - 1) / 2


def _description(seconds: Mapping[str, Mapping[str, float]], names: list[str]) -> str:
    text = f"The largest of {count_noun(len(names), 'part')} that the program times itself; one may contain others."
    if len(seconds) > 1:
        # Leave out the largest part: it is the whole run, or nearly.
        inner = names[1:] or names
        saved = {name: seconds["default"].get(name, 0.0) - seconds["winner"].get(name, 0.0) for name in inner}
        most, least = max(saved, key=saved.__getitem__), min(saved, key=saved.__getitem__)
        if saved[most] > 0.0:
            text += f" The winner spends {_seconds_text(seconds, most)} s in {most}."
        if saved[least] < 0.0:
            text += f" It spends more in {least}: {_seconds_text(seconds, least)} s."
    return text


def _seconds_text(seconds: Mapping[str, Mapping[str, float]], name: str) -> str:
    return f"{seconds['winner'].get(name, 0.0):.3g} instead of {seconds['default'].get(name, 0.0):.3g}"


def _table(seconds: Mapping[str, Mapping[str, float]], wholes: Mapping[str, float]) -> Table:
    columns = ["part"]
    for label in seconds:
        columns += [f"{label} [s]", f"{label} [%]"]
    names = dict.fromkeys(name for some in seconds.values() for name in some)
    rows = []
    for name in sorted(names, key=lambda name: -max(some.get(name, 0.0) for some in seconds.values())):
        figures: list[float | None] = []
        for label, some in seconds.items():
            value = some.get(name)
            figures += [None, None] if value is None else [_figure(value), _figure(100.0 * value / wholes[label])]
        rows.append((name, *figures))
    return Table(tuple(columns), tuple(rows))


def _figure(value: float) -> float:
    return float(f"{value:.4g}")
