"""Hope: whether a study may still come to something, or has to stop since nothing works."""

from pathlib import Path

from autotune.display.messages import failure_summary
from autotune.errors import NothingWorkedError
from autotune.formatting import output_folder, shown
from autotune.records.study import State, TrialRecord
from autotune.statistics.standings import Standings
from launchers import STDERR, STDOUT
from launchers.sequence import last_folder

_LINES = 12
_CHARACTERS = 200
_READ_BYTES = 8192


def check_hope(standings: Standings, give_up_after: int, *, launched: bool) -> None:
    """Stop a study whose default configuration fails before anything else has worked, or whose trials all fail.

    What the default does is known where runs are `launched`: a recorded one, or another program's, is as it is.

    Raises:
        NothingWorkedError: nothing worked so far.
    """
    default = standings.default
    if launched and default is not None and default.state is State.FAILED and not standings.measured:
        raise NothingWorkedError(_why_default_failed(default))
    if standings.nothing_worked >= give_up_after:
        raise NothingWorkedError(failure_summary(_ran(standings)))


def check_worked(standings: Standings) -> None:
    """Say of a study that has ended that every trial failed, if so.

    Raises:
        NothingWorkedError: every trial that ran failed.
    """
    if standings.nothing_worked:
        check_hope(standings, 1, launched=False)


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
        f"the default configuration failed, so there is nothing to compare others with: {shown(default.configuration)}",
        f"{default.failure.failure.value}: {default.message}",
        *ends,
        *([folder] if folder else []),
        "mend the study file or the program, then use the same command again",
    ]
    return "\n".join(lines)


def _end_of(path: Path) -> str:
    """Return the last lines of a file under its name; empty where there is nothing to see."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _READ_BYTES))
            text = file.read().decode("utf-8", errors="replace")
    except OSError:
        return ""
    # Whatever a program prints must not move the cursor of a terminal.
    lines = ["".join(char if char.isprintable() else " " for char in line) for line in text.rstrip().splitlines()]
    shown_lines = [f"  {line.rstrip()[:_CHARACTERS]}" for line in lines[-_LINES:]]
    return "\n".join([f"the end of its {path.name}:", *shown_lines]) if shown_lines else ""
