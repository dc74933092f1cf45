"""A bar of progress that can be read without colours, too: what is left is drawn thin."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.progress_bar import ProgressBar
from rich.text import Text


@dataclass(frozen=True)
class Bar:
    """How much of `total` is completed; with no total, a bar that moves."""

    completed: int
    total: int | None
    width: int = 30

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw it."""
        if not self.total:
            yield ProgressBar(total=None, width=self.width)
            return
        whole, rest = ("#", ".") if options.ascii_only else ("━", "─")
        filled = min(self.width, self.width * self.completed // self.total)
        yield Text.assemble((whole * filled, "bar.complete"), (rest * (self.width - filled), "bar.back"))
