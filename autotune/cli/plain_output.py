"""Output without the control characters of others: a study file or a program must not control the reader's terminal.

All that a command prints goes through `PlainConsole` or `autotune.cli.common.echo`, and a log through `PlainFormatter`.
"""

import logging
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from autotune.formatting import plain, plain_line


class PlainConsole(Console):
    """A console that prints texts without invisible characters, and does not interpret markup or emoji in them."""

    def __init__(self, *, stderr: bool = False) -> None:
        """Print to standard output, or to standard error."""
        super().__init__(stderr=stderr, soft_wrap=True, markup=False, highlight=False, emoji=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of a renderable; colours and cursor movements are no part of their texts."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(plain(segment.text), segment.style)


class PlainFormatter(logging.Formatter):
    """Formats a record as one line, below it its traceback, without invisible characters."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802  the name of `logging`
        """Return the line of a record."""
        return plain_line(super().formatMessage(record))

    def format(self, record: logging.LogRecord) -> str:
        """Return the text of a record."""
        return plain(super().format(record))
