"""Show a running study to a person: a live panel on a terminal, plain lines elsewhere."""

import re
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.formatting import configuration_text, count_failures, plain_line, quantity
from autotune.records.limit import breaks
from autotune.statistics.standings import Standings
from objectives.base import Progress
from spaces import Configuration

# A range narrower than this ratio is shown as a single number.
_SURE = 1.2
# Terms that lines about runs use, and their legend.
_LEGEND = {
    re.compile(r"\bset aside\b"): "set aside: others took more than the noise of the study allows; it does not count",
    re.compile(r"\btaken \d+%"): "taken: the share of the run's time that other processes took from it",
    re.compile(r"\blooks [\d.e+]+x"): "looks: speed-up over the default by the runs of tuning, not confirmed",
}


@dataclass(frozen=True)
class Running:
    """A run in flight, of a trial or of one side of a comparison.

    Attributes:
        number: The number of the trial.
        configuration: Its configuration.
        elapsed_s: The time since the start of the run.
        progress: The last progress that the program reported.
        label: The side of a comparison.
        waits: Why its job has not started yet, or has left no result; empty while it runs.
    """

    number: int | None
    configuration: Configuration
    elapsed_s: float
    progress: Progress | None = None
    label: str = ""
    waits: str = ""


@dataclass(frozen=True)
class Row:
    """A row of the panel: a configuration, its value, and its state."""

    configuration: Configuration
    value: str
    state: str


@dataclass(frozen=True)
class Status:
    """The state of a study at a moment.

    Attributes:
        standings: All trials with their values.
        budget: The number of runs or trials of this phase.
        finished: How many of them are finished.
        running: The runs in flight that are shown.
        left_s: The expected time until the verdict.
        left_most_s: The longest time until the verdict.
        phase: The phase of the study.
        open_ended: Whether the study may stop before its budget, at an unknown time.
        more: The number of runs in flight that are not shown.
        subject: The current work and its progress, if it is not the search for the best trial.
        compared: The configurations that are compared with the default, in place of the best trial.
    """

    standings: Standings
    budget: int
    finished: int
    running: tuple[Running, ...] = ()
    left_s: float | None = None
    left_most_s: float | None = None
    phase: str = "tuning"
    open_ended: bool = False
    more: int = 0
    subject: str = ""
    compared: tuple[Row, ...] = ()


@dataclass(frozen=True)
class Bar:
    """A progress bar that is readable without colours: the rest is drawn thin. Without a total, the bar moves."""

    completed: int
    total: int | None
    width: int = 30

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the bar."""
        if not self.total:
            yield ProgressBar(total=None, width=self.width)
            return
        whole, rest = ("#", ".") if options.ascii_only else ("━", "─")
        filled = min(self.width, self.width * self.completed // self.total)
        yield Text.assemble((whole * filled, "bar.complete"), (rest * (self.width - filled), "bar.back"))


class Display(Protocol):
    """Shows a study to a person."""

    def line(self, text: str) -> None:
        """Show a new best, a failure or a decision."""

    def detail(self, text: str) -> None:
        """Show the end of a run that is none of these."""

    def waits(self, text: str) -> None:
        """Show that this session waits for another session, or for a quiet machine."""

    def update(self, status: Status) -> None:
        """Show the state of the study."""

    def close(self) -> None:
        """Stop showing the study."""


class NoDisplay:
    """Shows nothing, for callers that want only the result."""

    def line(self, text: str) -> None:
        """Show nothing."""

    def detail(self, text: str) -> None:
        """Show nothing."""

    def waits(self, text: str) -> None:
        """Show nothing."""

    def update(self, status: Status) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


class PlainDisplay:
    """Prints lines, for log files and pipes."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        """Write to `console`, with `verbose` also the details."""
        self._console = console
        self._verbose = verbose
        self._legend = dict(_LEGEND)

    def line(self, text: str) -> None:
        """Print a line, and below it the legend of the terms that it is the first to use."""
        self._print(text)
        for term in [term for term in self._legend if term.search(text)]:
            self._print(f"  ({self._legend.pop(term)})")

    def detail(self, text: str) -> None:
        """Print a line if the display is verbose."""
        if self._verbose:
            self.line(text)

    def waits(self, text: str) -> None:
        """Print a line."""
        self.line(text)

    def update(self, status: Status) -> None:
        """Show nothing, since updates come several times a second and would fill a log."""

    def close(self) -> None:
        """Do nothing."""

    def _print(self, text: str) -> None:
        self._console.print(plain_line(text), markup=False, highlight=False, soft_wrap=True)


class LiveDisplay(PlainDisplay):
    """Prints lines above a panel that follows the study."""

    def __init__(self, console: Console, *, verbose: bool = False) -> None:
        """Draw on `console`, a terminal; with `verbose` print also the details."""
        super().__init__(console, verbose=verbose)
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def waits(self, text: str) -> None:
        """Show it in the panel until the wait is over."""
        self._live.update(Text(text, style="bold"))

    def update(self, status: Status) -> None:
        """Redraw the panel."""
        self._live.update(panel(status))

    def close(self) -> None:
        """Remove the panel."""
        self._live.stop()


def display_for(console: Console, *, verbose: bool = False) -> Display:
    """Return a live display for a terminal, and a plain one for other consoles."""
    return LiveDisplay(console, verbose=verbose) if console.is_terminal else PlainDisplay(console, verbose=verbose)


def panel(status: Status) -> Group:
    """Draw the live panel."""
    head = Table.grid(padding=(0, 2))
    bar = Bar(status.finished, None if status.open_ended else status.budget)
    done = (
        f"{status.finished} of at most {status.budget}" if status.open_ended else f"{status.finished}/{status.budget}"
    )
    head.add_row(status.phase, bar, done, time_left(status))
    table = Table.grid(padding=(0, 2))
    table.add_column(overflow="fold")
    table.add_column(no_wrap=True)
    table.add_column()
    best = None if status.compared or status.subject else _best_row(status)
    subject = status.subject or ("" if best or status.compared else "no measurement yet")
    for row in status.compared if best is None else (best,):
        table.add_row(*_cells(row), style="bold")
    for run in status.running:
        table.add_row(*_cells(_running_row(run)), style="dim")
    lines: list[Text | Table] = [Text(subject, style="bold")] if subject else []
    lines.append(table)
    if status.more:
        lines.append(Text(f"{status.more} more runs", style="dim"))
    if status.standings.counts:
        kinds = ", ".join(count_failures(dict(Counter(status.standings.counts).most_common())))
        lines.append(Text(f"no value: {kinds}", style="yellow"))
    return Group(head, *lines)


def time_left(status: Status) -> str:
    """Return the time left until the verdict as text; a range if it is uncertain."""
    if status.left_s is None:
        return ""
    least, most = status.left_s, status.left_most_s or status.left_s
    span = duration(least) if most < least * _SURE else f"{duration(least)} to {duration(most)}"
    return f"about {span} left"


def _cells(row: Row) -> tuple[Text, Text, Text]:
    return Text(configuration_text(row.configuration)), Text(row.value), Text(row.state)


def _best_row(status: Status) -> Row | None:
    """Return the row of the best trial so far, or of the nearest while none keeps the limits; None without both."""
    standings = status.standings
    best, nearest = standings.incumbent, standings.nearest
    if best is None and nearest is not None:
        broken = breaks(standings.limits.breaches(nearest.number))
        return Row(nearest.configuration, "", f"nothing keeps the limits yet; trial {nearest.number} {broken}")
    if best is None:
        return None
    value, speed_up = quantity(standings.value(best), standings.metric), standings.speed_up(best)
    if speed_up is not None and best is not standings.baseline:
        value += f", {speed_up.words(standings.metric)}"
    return Row(best.configuration, value, f"best: trial {best.number}, runs differ by {standings.noise:.0%}")


def _running_row(run: Running) -> Row:
    figures = ""
    if run.progress is not None:
        values = (f"{name}={value:.3g}" for name, value in run.progress.metrics.items())
        figures = " ".join([f"step {run.progress.step}", *values])
    state = f"waits, {duration(run.elapsed_s)}: {run.waits}" if run.waits else f"runs, {duration(run.elapsed_s)}"
    return Row(run.configuration, figures, f"{run.label or f'trial {run.number}'} {state}")


def duration(seconds: float) -> str:
    """Return a duration for reading: 1:05:00, 05:00."""
    return str(timedelta(seconds=round(seconds))).removeprefix("0:")
