"""The chart of curves of programs that work in steps, by the brackets and rungs of Hyperband."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from autotune.execution.segments import Curve, curve_of
from autotune.formatting import join_words, quantity
from autotune.pictures.chart import Axis, Chart, Line, Mark, Panel, Points, Role, Table
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import axis_of, better, count_noun, hover_text
from autotune.records.study import State, TrialRecord

if TYPE_CHECKING:
    from autotune.results.summary import Summary
    from autotune.scheduling.hyperband import Bracket

_LINES = 200
_STEPS = 120
_COLUMNS = 2


def curves(summary: "Summary", brackets: "Sequence[Bracket]" = ()) -> Chart | None:
    """Return the metric of every trial over its steps, a panel for each kind of bracket; None without steps."""
    trained = [trial for trial in sorted(summary.trials, key=lambda trial: trial.number) if _curve(trial)]
    if not trained:
        return None
    groups = [
        (title, steps, _trials_to_draw(trials, summary)) for title, steps, trials in _groups(trained, summary, brackets)
    ]
    values = [value for _, _, trials in groups for trial in trials for _, value in _curve(trial)]
    axis = axis_of(summary.standings.metric, values)
    panels = [
        Panel(Axis("step", whole=True), axis, tuple(_marks(trials, steps, summary, (min(values), max(values)))), title)
        for title, steps, trials in groups
    ]
    drawn = sum(len(trials) for _, _, trials in groups)
    return Chart(
        "curves",
        "Training curves by rung",
        _description(trained, summary) + thinning_note(drawn, len(trained)),
        tuple(panels),
        _table(trained, summary),
        columns=min(_COLUMNS, len(panels)),
    )


def _curve(trial: TrialRecord) -> Curve:
    """Return the whole curve of a trial: the newest segment includes those before it."""
    runs = [run for run in trial.runs if run.of is not None]
    return curve_of(runs[-1].outcome) if runs else ()


def _groups(
    trials: Sequence[TrialRecord], summary: "Summary", brackets: "Sequence[Bracket]"
) -> list[tuple[str, tuple[int, ...], list[TrialRecord]]]:
    """Return title, rungs and trials of each panel; the default belongs to no bracket and is in all panels."""
    default = summary.standings.default
    others = [trial.number for trial in sorted(summary.trials, key=lambda trial: trial.number) if trial is not default]
    members: dict[tuple[int, ...], set[int]] = {}
    first = 0
    for bracket in brackets:
        # Repeated brackets have the same rungs and share a panel.
        members.setdefault(bracket.steps, set()).update(others[first : first + bracket.sizes[0]])
        first += bracket.sizes[0]
    groups = []
    for steps, numbers in members.items():
        mine = [trial for trial in trials if trial.number in numbers]
        if mine:
            title = (
                f"rungs at {join_words([str(step) for step in steps])}" if len(steps) > 1 else "no rung before the end"
            )
            both = [trial for trial in trials if trial.number in numbers or trial is default]
            groups.append((f"{title}: {count_noun(len(mine), 'trial')}", steps, both))
    return groups or [("", (), list(trials))]


def _trials_to_draw(trials: Sequence[TrialRecord], summary: "Summary") -> list[TrialRecord]:
    special = {trial.number for trial in (summary.best, summary.standings.default) if trial is not None}
    keep = {index for index, trial in enumerate(trials) if trial.number in special}
    return thin(trials, _LINES, keep)


def _marks(
    trials: Sequence[TrialRecord], rungs: Sequence[int], summary: "Summary", ends: tuple[float, float]
) -> list[Mark]:
    marks: list[Mark] = []
    if rungs:
        x = [part for step in rungs for part in (float(step), float(step), None)]
        marks.append(Line(Role.RUNG, "rung", tuple(x), (ends[0], ends[1], None) * len(rungs)))
    for role, label in _LABELS.items():
        mine = [trial for trial in trials if _role(trial, summary) is role]
        if mine:
            marks.append(_line(mine, role, label, summary))
            if role is Role.PAUSED:
                marks.append(_ends(mine, label, summary))
    return marks


_LABELS = {
    Role.PAUSED: "left early",
    Role.TRIAL: "trained to the end",
    Role.BASELINE: "default",
    Role.WINNER: "winner",
}


def _role(trial: TrialRecord, summary: "Summary") -> Role:
    if trial is summary.best:
        return Role.WINNER
    if trial is summary.standings.default:
        return Role.BASELINE
    return Role.TRIAL if trial.complete else Role.PAUSED


def _line(trials: Sequence[TrialRecord], role: Role, label: str, summary: "Summary") -> Line:
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for trial in trials:
        curve = thin(_curve(trial), _STEPS, {0, len(_curve(trial)) - 1})
        text = f"trial {trial.number}"
        x += [*(float(step) for step, _ in curve), None]
        y += [*(value for _, value in curve), None]
        hover += [*(f"{text}: {quantity(value, summary.standings.metric)} at step {step}" for step, value in curve), ""]
        if hover:
            # Only the end of a line shows the whole configuration, to keep the chart small.
            hover[-2] = hover_text(trial, summary.standings, hover[-2].partition(": ")[2])
    return Line(role, label, tuple(x), tuple(y), hover=tuple(hover))


def _ends(trials: Sequence[TrialRecord], label: str, summary: "Summary") -> Points:
    """Return points at the ends of curves, since a curve of a single step has no line."""
    ends = [(trial, *_curve(trial)[-1]) for trial in trials]
    hover = (
        hover_text(trial, summary.standings, f"{quantity(y, summary.standings.metric)} at step {x}")
        for trial, x, y in ends
    )
    x, y = tuple(float(step) for _, step, _ in ends), tuple(value for *_, value in ends)
    return Points(Role.PAUSED, label, x, y, tuple(hover))


def _description(trials: Sequence[TrialRecord], summary: "Summary") -> str:
    metric = summary.standings.metric
    left = sum(trial.state is State.PAUSED for trial in trials)
    text = f"{metric.name} ({better(metric)}) of {count_noun(len(trials), 'trial')} over its steps"
    if left:
        text += f"; {left} stopped before the last step, because others were better at their rung"
    if summary.steps is not None and summary.steps[1]:
        made, whole = summary.steps
        text += f". {made:,} steps were made, {made / whole:.0%} of the steps to train every trial to its end"
    return text + "."


def _table(trials: Sequence[TrialRecord], summary: "Summary") -> Table:
    """Return a table of the steps of each trial, most steps first."""
    metric = summary.standings.metric
    rows = []
    for trial in trials:
        curve = _curve(trial)
        best = min((value for _, value in curve), key=metric.cost)
        rows.append((trial.number, curve[-1][0], float(f"{best:.6g}"), _LABELS[_role(trial, summary)]))
    rows.sort(key=lambda row: (-row[1], metric.cost(row[2]), row[0]))
    columns = ("trial", "steps", f"best {Axis(metric.name, metric.unit).text}", "end")
    return Table(columns, tuple(rows[:100]))
