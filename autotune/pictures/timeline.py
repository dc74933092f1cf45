"""The chart of when and where each run was made: a lane for each set of cores or cards of a host."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from autotune.formatting import configuration_text, join_words, quantity
from autotune.pictures.chart import Axis, Bars, Cell, Chart, Panel, Role, Table
from autotune.pictures.downsampling import thin, thinning_note
from autotune.pictures.labels import count_noun
from autotune.records.study import Run

if TYPE_CHECKING:
    from autotune.results.summary import Summary

MOST = 1500
"""The largest number of runs that are drawn."""

_LANES = 24
_UNITS = (("s", 1.0, 600.0), ("min", 60.0, 7200.0), ("h", 3600.0, 48 * 3600.0), ("d", 86400.0, float("inf")))
_LABELS = {
    Role.TRIAL: "tuning",
    Role.MEASURED: "comparison",
    Role.CAPPED: "capped",
    Role.FAILED: "failed",
    Role.PAUSED: "set aside",
}


@dataclass(frozen=True)
class _PlacedRun:
    run: Run
    lane: str
    began_s: float

    @property
    def ended_s(self) -> float:
        return self.began_s + self.run.outcome.usage.elapsed_s

    @property
    def role(self) -> Role:
        if self.run.is_set_aside:
            return Role.PAUSED
        if self.run.outcome.failure is not None:
            return Role.FAILED
        if self.run.outcome.capped:
            return Role.CAPPED
        return Role.MEASURED if self.run.series.is_comparison else Role.TRIAL


def timeline(summary: "Summary", runs: Iterable[Run]) -> Chart | None:
    """Return each run from its start to its end, in the lane of its resources; None for replays and before two runs."""
    known_runs = [] if summary.definition.replay else [(run, run.began_s) for run in runs]
    placed = [_PlacedRun(run, _lane(run), began_s) for run, began_s in known_runs if began_s is not None]
    if len(placed) < 2:
        return None
    placed.sort(key=lambda one: one.began_s)
    lanes = _lanes(placed)
    known = [one for one in placed if one.lane in lanes]
    drawn = thin(known, MOST)
    first, last = placed[0].began_s, max(one.ended_s for one in placed)
    across, length = time_axis(first, last)
    marks = []
    for role, label in _LABELS.items():
        mine = [one for one in drawn if one.role is role]
        if mine:
            y = tuple(float(lanes.index(one.lane)) for one in mine)
            starts, ends = (
                tuple((time - first) / length for time in times)
                for times in zip(*((one.began_s, one.ended_s) for one in mine), strict=True)
            )
            hover = tuple(_hover_text(one, summary) for one in mine)
            marks.append(Bars(role, label, y, ends, hover, starts=starts))
    axis = Axis(ticks=tuple((float(at), lane) for at, lane in enumerate(lanes)), reverse=True)
    panel = Panel(across, axis, tuple(marks))
    left = len({one.lane for one in placed}) - len(lanes)
    more = f" The {len(lanes)} busiest of {len(lanes) + left} lanes are drawn." if left else ""
    text = _description(placed, (first, last), across.unit, length)
    return Chart(
        "timeline",
        "When and where runs were made",
        f"{text}{more}{thinning_note(len(drawn), len(known), 'runs')}",
        (panel,),
        _table(placed, lanes, (first, last)),
    )


def time_axis(first_s: float, last_s: float) -> tuple[Axis, float]:
    """Return the axis of the time after `first_s`, in seconds since 1970, and the length of its unit in seconds."""
    unit, length = next((name, size) for name, size, most in _UNITS if last_s - first_s <= most)
    return Axis(f"since {datetime.fromtimestamp(first_s, UTC):%Y-%m-%d %H:%M} UTC", unit), length


def _lane(run: Run) -> str:
    """Return the resources of a run in words: its cards, else its cores, else only its host."""
    held = run.job.get("resources", {})
    hosts = held.get("hosts") or [run.host]
    host = f"{hosts[0]} and {len(hosts) - 1} more" if len(hosts) > 1 else str(hosts[0])
    if held.get("cards"):
        return f"{host}: card {join_words([str(card.get('name', '?'))[:12] for card in held['cards']])}"
    cpus = sorted(held.get("cpus", ()))
    if not cpus:
        return host or "not known"
    whole = len(cpus) > 1 and cpus[-1] - cpus[0] == len(cpus) - 1
    return f"{host}: {'cores' if len(cpus) > 1 else 'core'} {f'{cpus[0]} to {cpus[-1]}' if whole else _few(cpus)}"


def _few(cpus: Sequence[int]) -> str:
    return ", ".join(map(str, cpus)) if len(cpus) <= 4 else f"{cpus[0]}, {cpus[1]}, …, {cpus[-1]}"


def _lanes(placed: Sequence[_PlacedRun]) -> list[str]:
    """Return the names of the lanes with most runs, in alphabetical order."""
    count: dict[str, int] = {}
    for one in placed:
        count[one.lane] = count.get(one.lane, 0) + 1
    return sorted(sorted(count, key=lambda lane: -count[lane])[:_LANES])


def _hover_text(placed: _PlacedRun, summary: "Summary") -> str:
    run = placed.run
    outcome, metric = run.outcome, summary.standings.metric
    value = outcome.metrics.get(metric.name)
    if outcome.failure is not None:
        ended = f"{outcome.failure.value}: {outcome.message[:160]}"
    elif outcome.capped:
        ended = "capped"
    else:
        ended = "" if value is None else quantity(value, metric)
    about = f"{run.series.kind.label}, {outcome.usage.elapsed_s:.4g} s, {count_noun(run.cores, 'core')}"
    whose = f"trial {run.trial}" if run.trial is not None else run.series.kind.label
    return f"{whose}: {ended}\n{about}\n{configuration_text(run.configuration)}"


def _description(placed: Sequence[_PlacedRun], ends: tuple[float, float], unit: str, length: float) -> str:
    whole = ends[1] - ends[0]
    busy = _busy_s(placed)
    share = f", with at least one run going for {busy / whole:.0%} of that time" if whole > 0.0 else ""
    spent = sum(one.run.core_s for one in placed)
    lost = sum(one.run.core_s for one in placed if one.role is Role.FAILED)
    share_lost = f"{lost / spent:.0%}" if lost else "0%"
    failed = "" if share_lost == "0%" else f" Failed runs took {share_lost} of the core-seconds."
    return f"{count_noun(len(placed), 'run')} in {whole / length:.3g} {unit}{share}.{failed}"


def _busy_s(placed: Sequence[_PlacedRun]) -> float:
    """Return for how many seconds at least one run was going; `placed` is sorted by start."""
    busy, until = 0.0, float("-inf")
    for one in placed:
        busy += max(0.0, one.ended_s - max(one.began_s, until))
        until = max(until, one.ended_s)
    return busy


def _table(placed: Sequence[_PlacedRun], lanes: Sequence[str], ends: tuple[float, float]) -> Table:
    """Return a table of the runs and the busy share of each lane."""
    rows: list[tuple[Cell, ...]] = []
    for lane in lanes:
        mine = [one for one in placed if one.lane == lane]
        roles = [sum(one.role is role for one in mine) for role in _LABELS]
        share = _busy_s(mine) / (ends[1] - ends[0]) if ends[1] > ends[0] else 1.0
        rows.append((lane, *roles, float(f"{100.0 * share:.3g}")))
    return Table(("where", *_LABELS.values(), "busy [%]"), tuple(rows))
