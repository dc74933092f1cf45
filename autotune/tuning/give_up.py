"""Stop a study in which nothing works."""

from pathlib import Path

from autotune.display.messages import failure_summary
from autotune.errors import NothingWorkedError
from autotune.formatting import configuration_text, output_folder, plain
from autotune.records.study import State, TrialRecord
from autotune.statistics.standings import Standings
from launchers import STDERR, STDOUT
from launchers.sequence import last_folder

_LINES = 12
_CHARACTERS = 200
_READ_BYTES = 8192


def check_give_up(standings: Standings, give_up_after: int, *, launched: bool) -> None:
    """Stop a study whose default configuration failed before any other worked, or whose first trials all failed.

    Args:
        standings: The trials so far.
        give_up_after: Number of failed trials after which a study without any success stops.
        launched: Whether this session launches the runs. The failure of a default that was recorded, or that another
            program ran, stops nothing.

    Raises:
        NothingWorkedError: Nothing has worked so far.
    """
    default = standings.default
    if launched and default is not None and default.state is State.FAILED and not standings.measured:
        raise NothingWorkedError(_why_default_failed(default))
    if standings.nothing_worked >= give_up_after:
        raise NothingWorkedError(failure_summary(_ran(standings)))


def check_anything_worked(standings: Standings) -> None:
    """Check that at least one trial of a finished study worked.

    Raises:
        NothingWorkedError: Every trial that ran failed.
    """
    if standings.nothing_worked:
        check_give_up(standings, 1, launched=False)


def _ran(standings: Standings) -> list[TrialRecord]:
    return [trial for trial in standings.trials.values() if trial.runs]


def _why_default_failed(default: TrialRecord) -> str:
    assert default.failure is not None
    assert default.failure.failure is not None
    folder = output_folder(default.job)
    ends = []
    if folder:
        ran = last_folder(Path(default.job["folder"]), [Path(part["folder"]) for part in default.job.get("parts", ())])
        ends = [text for name in (STDOUT, STDERR) if (text := _end_of(ran / name))]
    lines = [
        "the default configuration failed, so nothing can be compared with it: "
        + configuration_text(default.configuration),
        f"{default.failure.failure.value}: {default.message}",
        *ends,
        *([folder] if folder else []),
        "fix the study file or the program, then use the same command again",
    ]
    return "\n".join(lines)


def _end_of(path: Path) -> str:
    """Return the last lines of a file under a heading with its name; empty if the file is missing or empty."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _READ_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    shown_lines = [f"  {plain(line).rstrip()[:_CHARACTERS]}" for line in text.rstrip().splitlines()[-_LINES:]]
    return "\n".join([f"the end of its {path.name}:", *shown_lines]) if shown_lines else ""
