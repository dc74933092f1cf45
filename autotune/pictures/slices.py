"""The charts of values over each parameter, and of all parameters in parallel coordinates."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text, quantity, value_text
from autotune.pictures.chart import Axis, Cell, Chart, Line, Mark, Panel, Points, Role, Table, Texts
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import axis_of, better, brief, count_noun, hover_text, is_wide
from autotune.pictures.scales import Scale, scales_of, short, variance_shares
from autotune.records.study import State, TrialRecord
from autotune.statistics.standings import Standings

if TYPE_CHECKING:
    from autotune.results.summary import Summary

PANELS = 12
"""The largest number of parameters that are drawn: those that explain most."""

_POINTS = 1800
_WHOLE = 400
_LINES = 250
_CAPPED_LINES = 100
# The number of letters that fit beside all axes of parallel coordinates together.
_LETTERS = 90
_BEST_SHARE = 10
_COLUMNS = 3


@dataclass(frozen=True)
class _Measured:
    """The trials and parameters to draw.

    Attributes:
        summary: The study.
        trials: The complete trials.
        capped: The capped trials.
        scales: The scales of the parameters that explain most.
        shares: The share of the variance that each parameter explains.
        varied: The number of parameters that vary.
    """

    summary: "Summary"
    trials: Sequence[TrialRecord]
    capped: Sequence[TrialRecord]
    scales: Sequence[Scale]
    shares: dict[str, float]
    varied: int

    @property
    def standings(self) -> Standings:
        return self.summary.standings

    @cached_property
    def special(self) -> dict[int, Role]:
        """The winner and the default, by number."""
        best, baseline = self.summary.winner, self.standings.baseline
        roles = {} if baseline is None else {baseline.number: Role.BASELINE}
        if best is not None and best.complete and best is not baseline:
            roles[best.number] = Role.WINNER
        return roles

    def level(self, trial: TrialRecord) -> float:
        """Return the value of a complete trial, or the bound of a capped one."""
        return self.standings.value(trial) if trial.complete else self.standings.bound_of(trial)

    def thin(self, most: int) -> list[TrialRecord]:
        """Return at most `most` trials, including the best, the winner and the default."""
        best = {trial.number for trial in self.standings.ranking[: max(1, most // 4)]} | set(self.special)
        keep = {index for index, trial in enumerate(self.trials) if trial.number in best}
        return thin(self.trials, most, keep)

    def about(self) -> str:
        if self.varied <= len(self.scales):
            return ""
        return f" The {len(self.scales)} of {self.varied} parameters that explain most are drawn."


def _measured_trials(summary: "Summary") -> _Measured | None:
    standings = summary.standings
    trials = sorted(standings.measured, key=lambda trial: trial.number)
    if len(trials) < 2:
        return None
    scales = scales_of(summary.definition.space)
    logs = [log(standings.value(trial)) for trial in trials]
    shares = variance_shares(scales, [trial.configuration for trial in trials], logs)
    chosen = sorted(shares, key=lambda name: -shares[name])[:PANELS]
    if not chosen:
        return None
    capped = [trial for trial in summary.trials if trial.state is State.CAPPED]
    return _Measured(summary, trials, capped, [scale for scale in scales if scale.name in chosen], shares, len(shares))


def slices(summary: "Summary") -> Chart | None:
    """Return the value of every complete trial over each parameter, a panel for each; None before two trials."""
    measured = _measured_trials(summary)
    if measured is None:
        return None
    drawn = measured.thin(max(100, _POINTS // len(measured.scales)))
    axis = axis_of(measured.standings.metric, [measured.standings.value(trial) for trial in drawn])
    panels = tuple(Panel(scale.axis, axis, tuple(_points(scale, drawn, measured))) for scale in measured.scales)
    metric = measured.standings.metric
    description = (
        f"{metric.name} ({better(metric)}) of {count_noun(len(measured.trials), 'valid trial')} over each parameter."
        f"{measured.about()}"
    )
    return Chart(
        "slices",
        "Values over each parameter",
        description + thinning_note(len(drawn), len(measured.trials)),
        panels,
        _table(measured),
        columns=min(_COLUMNS, len(panels)),
    )


def _points(scale: Scale, drawn: Sequence[TrialRecord], measured: _Measured) -> list[Mark]:
    labels = {Role.TRIAL: "trial", Role.BASELINE: "default", Role.WINNER: "winner"}
    marks: list[Mark] = []
    for role, label in labels.items():
        mine = [trial for trial in drawn if measured.special.get(trial.number, Role.TRIAL) is role]
        positions = [(trial, position) for trial in mine if (position := scale.place(trial.configuration)) is not None]
        if positions:
            x = tuple(position for _, position in positions)
            y = tuple(measured.standings.value(trial) for trial, _ in positions)
            hover = tuple(_hover_text(trial, scale, measured, len(drawn)) for trial, _ in positions)
            marks.append(Points(role, label, x, y, hover))
    return marks


def _hover_text(trial: TrialRecord, scale: Scale, measured: _Measured, drawn: int) -> str:
    """Return the hover text: the whole configuration, or only its value on this scale if there are many points."""
    whole = hover_text(trial, measured.standings)
    if drawn * len(measured.scales) <= _WHOLE:
        return whole
    return f"{whole.partition(chr(10))[0]}\n{scale.name}={value_text(trial.configuration.get(scale.name))}"


def _table(measured: _Measured) -> Table:
    """Return a table with the best trial at each value of each parameter."""
    metric = measured.standings.metric
    rows: list[tuple[str, str, int, float, int]] = []
    for scale in measured.scales:
        groups: dict[float, list[TrialRecord]] = {}
        for trial in measured.standings.measured:
            position = scale.place(trial.configuration)
            if position is not None:
                groups.setdefault(position, []).append(trial)
        for _, group in sorted(groups.items()):
            text = value_text(group[0].configuration.get(scale.name))
            rows.append((scale.name, text, len(group), _figure(measured.standings.value(group[0])), group[0].number))
    columns = ("parameter", "value", "trials", f"best {Axis(metric.name, metric.unit).text}", "of trial")
    return Table(columns, tuple(_fewer(rows)))


def _fewer(rows: Sequence[tuple[str, str, int, float, int]]) -> list[tuple[str, str, int, float, int]]:
    """Return a readable number of rows."""
    return thin(rows, 200)


def _figure(value: float) -> float:
    return float(f"{value:.6g}")


def parallel(summary: "Summary") -> Chart | None:
    """Return the complete trials, and the capped ones at their bounds, as lines over all parameters and the value.

    The result is None before two complete trials, or with fewer than two parameters.
    """
    measured = _measured_trials(summary)
    if measured is None or len(measured.scales) < 2:
        return None
    drawn, capped = measured.thin(_LINES), thin(measured.capped, _CAPPED_LINES)
    metric = measured.standings.metric
    values = [measured.level(trial) for trial in (*drawn, *capped)]
    wide = is_wide(values)
    ends = (min(values), max(values))
    best = {trial.number for trial in measured.standings.ranking[: max(1, len(measured.trials) // _BEST_SHARE)]}
    last = len(measured.scales)
    letters = max(6, _LETTERS // last)
    marks: list[Mark] = [_rulers(last + 1)]
    if capped:
        marks.append(_lines(capped, measured, Role.CAPPED, "capped, at its bound", (ends, wide)))
    for role, label in _LABELS.items():
        mine = [trial for trial in drawn if _role(trial, best, measured) is role]
        if mine:
            marks.append(_lines(mine, measured, role, label, (ends, wide)))
    marks += [_ruler_words(index, scale.ruler(), letters) for index, scale in enumerate(measured.scales)]
    values_at = [(_share(value, ends, wide, measured), brief(value)) for value in dict.fromkeys(ends)]
    marks.append(_ruler_words(last, values_at, letters))
    names = tuple((float(index), short(scale.name, 20)) for index, scale in enumerate(measured.scales))
    x = Axis(ticks=(*names, (float(last), Axis(metric.name, metric.unit).text)))
    winner = next((trial for trial in measured.trials if measured.special.get(trial.number) is Role.WINNER), None)
    stressed = f"The best {len(best)} are highlighted." if len(best) > 1 else "The best is highlighted."
    about = (
        "" if winner is None else f" The winner is trial {winner.number}: {configuration_text(winner.configuration)}."
    )
    description = (
        f"Every line is a trial ({count_noun(len(measured.trials), 'valid trial')}): its parameters and, on the right, "
        f"its {metric.name} (better is higher up).{_of_capped(measured)} {stressed}{about}{measured.about()}"
    )
    panel = Panel(x, Axis(ticks=()), tuple(marks))
    thinning = thinning_note(len(drawn), len(measured.trials)) + thinning_note(
        len(capped), len(measured.capped), "capped trials"
    )
    return Chart(
        "parallel", "All parameters side by side", description + thinning, (panel,), _best_trials_table(measured)
    )


def _of_capped(measured: _Measured) -> str:
    if not measured.capped:
        return ""
    if len(measured.capped) == 1:
        return " 1 capped trial ends at its bound: it was not better than that."
    return f" {count_noun(len(measured.capped), 'capped trial')} end at their bounds: they were not better than that."


_LABELS = {
    Role.TRIAL: "trial",
    Role.BEST: f"best {100 // _BEST_SHARE}%",
    Role.BASELINE: "default",
    Role.WINNER: "winner",
}


def _role(trial: TrialRecord, best: set[int], measured: _Measured) -> Role:
    return measured.special.get(trial.number, Role.BEST if trial.number in best else Role.TRIAL)


def _share(value: float, ends: tuple[float, float], wide: bool, measured: _Measured) -> float:
    """Return the position of a value on its axis, from 0 for the worst to 1 for the best."""
    low, high = ends
    if high <= low:
        return 0.5
    share = log(value / low) / log(high / low) if wide else (value - low) / (high - low)
    return share if measured.standings.metric.direction == "maximize" else 1.0 - share


def _lines(
    trials: Sequence[TrialRecord], measured: _Measured, role: Role, label: str, scale: tuple[tuple[float, float], bool]
) -> Line:
    x: list[float | None] = []
    y: list[float | None] = []
    hover: list[str] = []
    for trial in trials:
        shares = [parameter_scale.share(trial.configuration) for parameter_scale in measured.scales]
        shares.append(_share(measured.level(trial), *scale, measured))
        x += [*(float(index) for index in range(len(shares))), None]
        y += [*shares, None]
        # The axes show the configuration. Repeated in full at every corner it would be most of the file.
        short_ = f"trial {trial.number}: {'' if trial.complete else 'capped at '}"
        short_ += quantity(measured.level(trial), measured.standings.metric)
        hover += [*([short_] * len(shares)), ""]
    return Line(role, label, tuple(x), tuple(y), hover=tuple(hover))


def _rulers(count: int) -> Line:
    x: list[float | None] = []
    y: list[float | None] = []
    for index in range(count):
        x += [float(index), float(index), None]
        y += [0.0, 1.0, None]
    return Line(Role.GUIDE, "", tuple(x), tuple(y))


def _ruler_words(index: int, ticks: Sequence[tuple[float, str]], letters: int) -> Texts:
    x, y = (float(index),) * len(ticks), tuple(at for at, _ in ticks)
    return Texts(Role.GUIDE, x, y, tuple(short(text, letters) for _, text in ticks))


def _best_trials_table(measured: _Measured) -> Table:
    """Return a table of the ten best trials and the default."""
    metric = measured.standings.metric
    baseline = measured.standings.baseline
    rows = measured.standings.ranking[:10]
    if baseline is not None and all(trial is not baseline for trial in rows):
        rows = [*rows, baseline]
    columns = ("trial", Axis(metric.name, metric.unit).text, *(scale.name for scale in measured.scales))
    cells: list[tuple[Cell, ...]] = []
    for trial in rows:
        words = (value_text(trial.configuration.get(scale.name)) for scale in measured.scales)
        cells.append((trial.number, _figure(measured.standings.value(trial)), *words))
    return Table(columns, tuple(cells))
