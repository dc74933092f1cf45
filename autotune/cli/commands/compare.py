"""`autotune compare`: which of several commands is faster, and how sure that is."""

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from operator import and_
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated

import typer

from autotune.cli.command_words import WithWords, commands_after  # noqa: F401  the table of commands names it
from autotune.cli.common import errors, output, print_json
from autotune.cli.options import AsJson
from autotune.errors import ExitCode, is_interrupt
from autotune.files import write_output
from autotune.formatting import plain_line, quantity

if TYPE_CHECKING:
    from collections.abc import Callable

    from autotune.comparison.command_rounds import CommandComparison, CommandRounds, CommandSide, CommandStarter

_SUFFIXES = (".csv", ".json")
_LONGEST_NAME = 24
_LONGEST_COMMAND = 76
# The start of a process, and of its libraries, takes this long or longer.
_SHORT_S = 0.005
# A run counts as an outlier if it takes this much longer than the median of its command.
_OUTLIER = 1.5
_NOTABLE = 0.05

ExportOption = Annotated[
    Path | None, typer.Option("--export", metavar="FILE", help="Write every run to this file (.csv, .json).")
]
PrepareOption = Annotated[
    str | None, typer.Option("--prepare", metavar="COMMAND", help="Run this before each run; it is not measured.")
]
AnswerOption = Annotated[
    str | None,
    typer.Option("--answer", metavar="PATTERN", help="Refuse a run whose number in the pattern's group differs."),
]
ToleranceOption = Annotated[
    float, typer.Option("--relative-tolerance", min=0.0, help="How much that number may differ, as a share of it.")
]
StdinOption = Annotated[
    Path | None,
    typer.Option("--input", metavar="FILE", help="The standard input of every run."),
]
MostRunsOption = Annotated[
    int | None,
    typer.Option("--runs", min=1, help="Largest number of runs of each. Default: by the precision."),
]


def compare(
    context: typer.Context,
    names: Annotated[
        str | None, typer.Option("--names", metavar="NAME,...", help="Names of the commands, in their order.")
    ] = None,
    prepare: PrepareOption = None,
    stdin: StdinOption = None,
    answer: AnswerOption = None,
    relative_tolerance: ToleranceOption = 0.0,
    runs: MostRunsOption = None,
    export: ExportOption = None,
    as_json: AsJson = False,
) -> None:
    """Compare commands in interleaved runs.

    Give the commands after --: autotune compare -- ./old --threads 2 -- ./new --threads 2
    """
    commands = commands_after(context)
    if len(commands) < 2:
        msg = "give two commands or more, each after --: autotune compare -- ./old --threads 2 -- ./new --threads 2"
        raise typer.BadParameter(msg, param_hint="--")
    from autotune.comparison.command_rounds import CommandSide
    from launchers.secret import mask_words

    labels = _names(names, [mask_words(command) for command in commands])
    check_export(export)
    sides = tuple(
        CommandSide(label, {"command": label}, None, tuple(command))
        for label, command in zip(labels, commands, strict=True)
    )
    if not as_json:
        for side in sides:
            if side.label != (text := plain_line(shlex.join(side.shown))):
                output().print(f"{side.label}: {_shorten(text, _LONGEST_COMMAND - len(side.label))}")
    with command_starter(prepare, stdin, answer, relative_tolerance) as starter:
        compare_sides(sides, starter, runs, export, table_lines, as_json=as_json)


@contextmanager
def command_starter(
    prepare: str | None, stdin: Path | None, answer: str | None, relative_tolerance: float
) -> "Iterator[CommandStarter]":
    """Provide what starts the commands, by the options of the command line.

    Raises:
        typer.BadParameter: An option is wrong.
    """
    from autotune.comparison.command_rounds import CommandStarter
    from autotune.held_folders import temporary_folder
    from launchers.job import Surroundings
    from objectives.command_options import AnswerOptions

    if stdin is not None and not stdin.is_file():
        msg = (
            f"{stdin} is no regular file; each run reads it from its beginning, so write a pipe's text to a file first"
        )
        raise typer.BadParameter(msg, param_hint="--input")
    if relative_tolerance and answer is None:
        raise typer.BadParameter("needs --answer, the number that may differ", param_hint="--relative-tolerance")
    wanted = None
    if answer is not None:
        try:
            groups = re.compile(answer).groups
        except re.error as error:
            raise typer.BadParameter(f"{answer!r} is not a pattern: {error}", param_hint="--answer") from None
        if groups != 1:
            msg = f"{answer!r} has {groups} groups; put one group around the number: 'energy = (\\S+)'"
            raise typer.BadParameter(msg, param_hint="--answer")
        wanted = AnswerOptions(pattern=answer, relative_tolerance=relative_tolerance)
    try:
        before = tuple(shlex.split(prepare or ""))
    except ValueError as error:
        raise typer.BadParameter(f"{prepare!r}: {error}", param_hint="--prepare") from None
    with temporary_folder("compare") as folder:
        yield CommandStarter(folder, Surroundings(Path.cwd(), stdin), before, wanted)


def check_export(path: Path | None) -> None:
    """Refuse a file that cannot be written, before anything runs.

    Raises:
        typer.BadParameter: Its suffix is unknown, it is a folder, or its folder does not exist.
    """
    if path is None:
        return
    if path.suffix not in _SUFFIXES:
        raise typer.BadParameter(f"{path} must end in {' or '.join(_SUFFIXES)}", param_hint="--export")
    if path.is_dir():
        raise typer.BadParameter(f"{path} is a folder; name a file in it", param_hint="--export")
    if not path.absolute().parent.is_dir():
        raise typer.BadParameter(f"there is no folder {path.parent}; nothing was run", param_hint="--export")


def compare_sides(
    sides: "tuple[CommandSide, ...]",
    starter: "CommandStarter",
    runs: int | None,
    export: Path | None,
    draw: "Callable[[CommandComparison], list[str]]",
    *,
    as_json: bool,
    rounds: int | None = None,
) -> None:
    """Run the comparison, print its result, and export its runs; after Ctrl-C or an error, those so far."""
    import numpy as np

    from autotune.comparison.command_rounds import CommandRounds
    from autotune.execution.core_pool import find_core_user
    from autotune.execution.signals import stop_at_sigterm

    stop_at_sigterm()
    if (user := find_core_user()) is not None:
        errors().print(f"{user}: it and these runs disturb each other; wait for it, or use taskset for other cores")
    with _live_line() as (say, show):
        made = CommandRounds(sides, starter, runs, np.random.default_rng(), say, show, rounds)
        ended = _run(made)
    found = made.comparison
    if found.table.runs and as_json:
        print_json(found.to_dict())
    elif found.table.runs:
        for line in ["", *draw(found), "", *found.sentences(), *_notes(found)]:
            output().print(line)
    if found.table.runs and export is not None:
        _export(found, export)
    if ended is not None and is_interrupt(ended):
        so_far = ": the figures are those of the runs that ended" if found.table.runs else " before a run counted"
        errors().print(f"stopped{so_far}")
        raise typer.Exit(ExitCode.INTERRUPTED)
    if ended is not None:
        raise ended
    if not all(found.is_reliable(side) for side in range(len(sides))):
        raise typer.Exit(ExitCode.NOTHING_WORKED)


def _run(rounds: "CommandRounds") -> BaseException | None:
    """Run the rounds; return what ended them too early, so that what was measured is printed first."""
    try:
        rounds.run()
    except BaseException as error:  # noqa: BLE001  the caller raises it
        return error
    return None


@contextmanager
def _live_line() -> "Iterator[tuple[Callable[[str], None], Callable[[str], None]]]":
    """Provide functions that print a line, and that replace the line with the state; on a terminal only."""
    console = errors()

    def say(text: str) -> None:
        console.print(text)

    if not console.is_terminal:
        yield say, lambda _: None
        return
    from rich.live import Live
    from rich.text import Text

    with Live(console=console, transient=True, auto_refresh=False) as live:
        yield say, lambda text: live.update(Text(_shorten(text, console.width - 1)), refresh=True)


def table_lines(found: "CommandComparison") -> list[str]:
    """Return the figures of every command as aligned lines."""
    several = len(found.table.sides) > 2
    columns = ["", "median", "times as fast" if several else "range", "cpu", "taken", "runs"]
    rows = [columns]
    for index, side in enumerate(found.table.sides):
        values = list(found.table.values(index).values())
        if not values:
            rows.append([side.label, "no value", *[""] * (len(columns) - 2)])
            continue
        outcomes = [run.outcome for run in found.table.runs_of(index) if run.outcome.complete]
        taken = [share for one in outcomes if (share := one.disturbance.taken_share) is not None]
        ratio = found.ratio(index) if index else None
        beside = "{:.3f} ({:.3f} to {:.3f})".format(*ratio) if ratio else "" if index else "1"
        cpu_s = median(one.usage.cpu_s for one in outcomes)
        cells = [
            side.label,
            _seconds(median(values)),
            beside if several else f"{min(values):.3g} to {max(values):.3g}",
            _seconds(float(f"{cpu_s:.3g}")),
            f"{median(taken):.0%}" if taken else "",
            str(len(values)),
        ]
        rows.append(cells)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]


def _seconds(value: float) -> str:
    from objectives.command import ELAPSED

    return quantity(value, ELAPSED)


def _notes(found: "CommandComparison") -> list[str]:
    """Return what the figures do not show: short runs, outliers, failures, and others on the machine."""
    notes, short = [], []
    for index, side in enumerate(found.table.sides):
        values = list(found.table.values(index).values())
        if values and median(values) < _SHORT_S:
            short.append(side.label)
        slow = [value for value in values if value > _OUTLIER * median(values)]
        if slow and len(slow) < len(values) / 4:
            notes.append(
                f"outliers: {len(slow)} of {len(values)} runs of {side.label} took up to {_seconds(max(slow))}; they "
                "hardly move the ratio"
            )
        if failures := found.failures(index):
            notes.append(f"{side.label} failed in {len(failures)} of {len(found.runs_of(index))} runs: {failures[0]}")
    if short:
        notes.append(
            f"{' and '.join(short)}: most of so short a time is the start of a process, which stays in the figures; "
            "compare longer runs"
        )
    outcomes = [run.outcome for run in found.table.runs.values()]
    taken = [share for one in outcomes if (share := one.disturbance.taken_share) is not None]
    if found.aside:
        notes.append(f"aside: {len(found.aside)} disturbed runs do not count and were made again")
    if taken and median(taken) >= _NOTABLE:
        notes.append(
            f"taken: others took {median(taken):.0%} of these runs' time (median): the ratio is of times without that"
        )
    return notes


def _export(found: "CommandComparison", path: Path) -> None:
    from autotune.results.export import as_csv

    text = f"{json.dumps(found.to_dict(), indent=2)}\n" if path.suffix == ".json" else as_csv(found.rows())
    try:
        write_output(path, text)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {path}: {error.strerror}", param_hint="--export") from error


def _names(given: str | None, commands: Sequence[Sequence[str]]) -> list[str]:
    if given is None:
        return _own_names(commands)
    names = [plain_line(name.strip()) for name in given.split(",")]
    if len(names) != len(commands) or len(set(names)) < len(names) or not all(names):
        msg = f"{given!r} must have {len(commands)} different names, one for each command, with commas between them"
        raise typer.BadParameter(msg, param_hint="--names")
    return names


def _own_names(commands: Sequence[Sequence[str]]) -> list[str]:
    """Return a short name for each command: the words that not all commands have, or not as often."""
    common = reduce(and_, map(Counter, commands))
    names: list[str] = []
    for number, command in enumerate(commands, start=1):
        words = [word for at, word in enumerate(command) if command[: at + 1].count(word) > common[word]]
        own = plain_line(" ".join(words) or command[0])
        name = _shorten(own, _LONGEST_NAME)
        names.append(name if name not in names else f"{_shorten(own, _LONGEST_NAME - 5)} ({number})")
    return names


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(width - 3, 1)]}..."
