"""Folders of runs that nobody has: their coordinator was killed before it had taken the run, or had given it up."""

from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from autotune.coordination.coordinators import has_ended
from autotune.coordination.kept_results import RESULT_FILE
from autotune.files import discard
from autotune.records.study import Run
from autotune.storage.study_store import StudyStore
from launchers.status import read_status


def leased_folders(store: StudyStore) -> frozenset[str]:
    """Return the folders of runs that somebody has, or may take over."""
    return frozenset(lease.record["job"]["folder"] for lease in store.leases("").all() if "job" in lease.record)


def sweep_unlaunched(runs: Path, leased: Collection[str], stored: Iterable[Run]) -> None:
    """Remove the folders of such runs of coordinators of this host that are no more; each has a folder in `runs`.

    That goes, too, if it has no other: its coordinator may have ended when it had just been made. A run that is taken
    has a lease until it is stored: `leased` are the folders of those, read before what is `stored`. What ended well
    stays.
    """
    known = {run.job.get("folder") for run in stored} | set(leased)
    with suppress(OSError):
        for around in [path for path in runs.resolve().iterdir() if has_ended(path.name)]:
            for folder in [path for path in around.iterdir() if path.is_dir() and not path.is_symlink()]:
                if str(folder) not in known and read_status(folder) is None and not (folder / RESULT_FILE).exists():
                    discard(folder)
            with suppress(OSError):
                around.rmdir()  # unless runs are left in it
