"""Folders of runs that were prepared and not launched: their coordinator was killed before it had taken the run."""

from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from autotune.coordination.coordinators import has_ended
from autotune.coordination.kept_results import RESULT_FILE
from autotune.files import discard
from autotune.records.study import Run
from launchers.status import read_status


def sweep_unlaunched(runs: Path, stored: Iterable[Run]) -> None:
    """Remove the folders of such runs of coordinators of this host that are no more; each has a folder in `runs`.

    That goes, too, if it has no other: its coordinator may have ended when it had just been made.

    A run that is taken has a lease, by which it is found. No job of such a run may be in a queue.
    """
    known = {run.job.get("folder") for run in stored}
    with suppress(OSError):
        for around in [path for path in runs.resolve().iterdir() if has_ended(path.name)]:
            for folder in [path for path in around.iterdir() if path.is_dir() and not path.is_symlink()]:
                if str(folder) not in known and read_status(folder) is None and not (folder / RESULT_FILE).exists():
                    discard(folder)
            with suppress(OSError):
                around.rmdir()  # unless runs are left in it
