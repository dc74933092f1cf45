"""What several commands share: consoles, options, and how values are written."""

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any

import typer
from rich.console import Console

from autotune import storage_url
from autotune.records import Definition, TrialRecord, baseline, speed_up

Storage = Annotated[
    str,
    typer.Option(
        "--storage",
        envvar="AUTOTUNE_STORAGE",
        help="Where studies are kept: a SQLite file, or an address such as postgresql+psycopg://user@host/database.",
        show_default=True,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for another program.")]
StudyName = Annotated[str, typer.Argument(help="The study's name; `autotune list` shows them.")]

DEFAULT_STORAGE = storage_url.DEFAULT

_DURATION = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?")


def output() -> Console:
    """Return the console for results."""
    return Console(soft_wrap=True, highlight=False)


def errors() -> Console:
    """Return the console for errors and progress."""
    return Console(stderr=True, soft_wrap=True, highlight=False)


def print_json(value: object) -> None:
    """Print a value as JSON, one document."""
    typer.echo(json.dumps(value, indent=2, default=str))


def duration_s(text: str) -> float:
    """Read a duration: `90`, `90s`, `15m`, `1h30m`, `2d`.

    Raises:
        typer.BadParameter: it is none, or not positive.
    """
    match = _DURATION.fullmatch(text.strip())
    parts = [float(part or 0) for part in match.groups()] if match else []
    seconds = sum(part * unit for part, unit in zip(parts, (86400, 3600, 60, 1), strict=False))
    if seconds <= 0:
        msg = f"{text!r} is not a duration; write 90s, 15m, 1h30m"
        raise typer.BadParameter(msg)
    return seconds


def trial_row(trial: TrialRecord, definition: Definition, trials: list[TrialRecord]) -> dict[str, Any]:
    """Return a trial as a flat table row."""
    target = definition.target
    reference = baseline(trials)
    row: dict[str, Any] = {"trial": trial.number, "state": state_of(trial)}
    row |= {name: _metric(trial, name) for name in (metric.name for metric in definition.metrics)}
    row["speed_up"] = (
        speed_up(trial.value(target), reference.value(target), target) if trial.complete and reference else None
    )
    row |= dict(trial.configuration)
    row["message"] = trial.outcome.message if trial.outcome else ""
    return row


def state_of(trial: TrialRecord) -> str:
    """Return `complete`, `running`, or the kind of failure."""
    if trial.outcome is None:
        return "running"
    return trial.outcome.failure.value if trial.outcome.failure else "complete"


def _metric(trial: TrialRecord, name: str) -> float | None:
    metrics: Mapping[str, float] = trial.outcome.metrics if trial.outcome else {}
    return metrics.get(name)
