"""The cleaner: removes scratch data of runs, once what they showed is in storage.

Until then a run's folder is the evidence: whoever collects the run after a crash reads it as the first would have.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from autotune.execution.run_folder import clean, is_folder_of
from autotune.records.study import Run
from launchers import Job

# More runs than a session stores in one moment: only those may have been left uncleaned by one that was killed.
_NEWEST = 100


class Cleaner:
    """Cleans the folders of runs beside the session, which goes on meanwhile: removing many files takes its time."""

    def __init__(self, workers: ThreadPoolExecutor) -> None:
        """Clean with `workers`."""
        self._workers = workers
        self._cleaning: dict[str, Future[None]] = {}

    def clean(self, job: Job) -> None:
        """Clean the folder of a run that is stored, or that nobody will make again."""
        self._cleaning = {name: cleaning for name, cleaning in self._cleaning.items() if not cleaning.done()}
        self._cleaning[job.name] = self._workers.submit(clean, job.folder, [part.folder for part in job.parts])

    def wait(self, name: str) -> None:
        """Wait until the folder of a run is clean: another run of that name gets it."""
        cleaning = self._cleaning.pop(name, None)
        if cleaning is not None:
            cleaning.result()

    def catch_up(self, stored: Iterable[Run]) -> None:
        """Clean what a session has left that was killed after it stored its last runs."""
        for run in islice(reversed(tuple(stored)), _NEWEST):
            folder = Path(run.job.get("folder") or "")
            if folder.is_absolute() and is_folder_of(folder, run.outcome.usage):
                clean(folder, [Path(part["folder"]) for part in run.job.get("parts", ())])


@contextmanager
def cleaner() -> Iterator[Cleaner]:
    """Provide a cleaner; all is clean when the context ends."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="cleaner") as workers:
        yield Cleaner(workers)
