"""Show a running study to a person: a live panel on a terminal, plain lines elsewhere."""

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from autotune.formatting import configuration_text, quantity
from autotune.records.limit import breaks
from autotune.statistics.standings import Standings
from objectives.base import Progress
from spaces import Configuration

# A range narrower than this ratio is shown as a single number.
_SURE = 1.2


@dataclass(frozen=True)
class Running:
    """A run in flight, of a trial or of one side of a comparison.

    Attributes:
        number: The number of the trial.
        configuration: Its configuration.
        elapsed_s: The time since the start of the run.
        progress: The last progress that the program reported.
        label: The side of a comparison.
        waits: Why the job has not started yet; empty once it has.
    """

    number: int | None
    configuration: Configuration
    elapsed_s: float
    progress: Progress | None = None
    label: str = ""
    waits: str = ""


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
        """Show an event."""

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

    def waits(self, text: str) -> None:
        """Show nothing."""

    def update(self, status: Status) -> None:
        """Show nothing."""

    def close(self) -> None:
        """Do nothing."""


class PlainDisplay:
    """Prints a line for each event, for log files and pipes."""

    def __init__(self, console: Console) -> None:
        """Write to `console`."""
        self._console = console

    def line(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def waits(self, text: str) -> None:
        """Print a line."""
        self.line(text)

    def update(self, status: Status) -> None:
        """Show nothing, since updates come several times a second and would fill a log."""

    def close(self) -> None:
        """Do nothing."""


class LiveDisplay:
    """Prints a line for each event, above a panel that follows the study."""

    def __init__(self, console: Console) -> None:
        """Draw on `console`, a terminal."""
        self._live = Live(console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def line(self, text: str) -> None:
        """Print a line above the panel."""
        self._live.console.print(text, markup=False, highlight=False)

    def waits(self, text: str) -> None:
        """Print a line above the panel, and show it in the panel until the wait is over."""
        self.line(text)
        self._live.update(Text(text, style="bold"))

    def update(self, status: Status) -> None:
        """Redraw the panel."""
        self._live.update(panel(status))

    def close(self) -> None:
        """Remove the panel."""
        self._live.stop()


def display_for(console: Console) -> Display:
    """Return a live display for a terminal, and a plain one for other consoles."""
    return LiveDisplay(console) if console.is_terminal else PlainDisplay(console)


def panel(status: Status) -> Group:
    """Draw the live panel."""
    head = Table.grid(padding=(0, 2))
    bar = Bar(status.finished, None if status.open_ended else status.budget)
    done = (
        f"{status.finished} of at most {status.budget}" if status.open_ended else f"{status.finished}/{status.budget}"
    )
    head.add_row(status.phase, bar, done, time_left(status))
    lines: list[Text] = [Text(status.subject or best_line(status), style="bold")]
    if status.standings.counts:
        kinds = ", ".join(f"{count} {kind}" for kind, count in Counter(status.standings.counts).most_common())
        lines.append(Text(f"no value: {kinds}", style="yellow"))
    lines.extend(Text(_running_line(run), style="dim") for run in status.running)
    if status.more:
        lines.append(Text(f"running: {status.more} more", style="dim"))
    return Group(head, *lines)


def time_left(status: Status) -> str:
    """Return the time left until the verdict as text; a range if it is uncertain."""
    if status.left_s is None:
        return ""
    least, most = status.left_s, status.left_most_s or status.left_s
    span = duration(least) if most < least * _SURE else f"{duration(least)} to {duration(most)}"
    return f"about {span} left"


def best_line(status: Status) -> str:
    """Return a line on the best value so far."""
    standings = status.standings
    best = standings.incumbent
    if best is None and standings.nearest is not None:
        nearest = standings.nearest
        return (
            f"nothing keeps the limits yet; trial {nearest.number} {breaks(standings.limits.breaches(nearest.number))}"
        )
    if best is None:
        return "no measurement yet"
    speed_up = standings.speed_up(best)
    text = f"best: trial {best.number}, {quantity(standings.value(best), standings.metric)}"
    if speed_up is not None and best is not standings.baseline:
        text += f", {speed_up.words(standings.metric)}"
    return f"{text} (runs differ by {standings.noise:.0%})  {configuration_text(best.configuration)}"


def _running_line(run: Running) -> str:
    state = "waiting" if run.waits else "running"
    name = run.label or f"trial {run.number}"
    text = f"{state}: {name}  {duration(run.elapsed_s)}  {configuration_text(run.configuration)}"
    if run.waits:
        return f"{text}  {run.waits}"
    if run.progress is not None:
        figures = " ".join(f"{name}={value:.3g}" for name, value in run.progress.metrics.items())
        text += f"  step {run.progress.step} {figures}"
    return text


def duration(seconds: float) -> str:
    """Return a duration for reading: 1:05:00, 05:00."""
    return str(timedelta(seconds=round(seconds))).removeprefix("0:")
