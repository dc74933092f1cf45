"""The cleaner removes the scratch data of runs after their results are stored.

Before that, a run's folder is the only evidence of its result: after a crash, the next session reads it from there.
"""

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from autotune.execution.run_folder import clean, is_folder_of
from autotune.records.study import Run
from launchers import Job

# More than a session stores at once: a killed session can have left only these uncleaned.
_NEWEST = 100


class Cleaner:
    """Cleans run folders in the background, because removing many files takes time."""

    def __init__(self, workers: ThreadPoolExecutor) -> None:
        """Clean on the threads of `workers`."""
        self._workers = workers
        self._cleaning: dict[str, Future[None]] = {}

    def clean(self, job: Job) -> None:
        """Clean the folder of a run that is stored or given up."""
        self._cleaning = {name: cleaning for name, cleaning in self._cleaning.items() if not cleaning.done()}
        self._cleaning[job.name] = self._workers.submit(clean, job.folder, [part.folder for part in job.parts])

    def wait(self, name: str) -> None:
        """Wait until the folder of a run is clean, because the next run of that name uses it."""
        cleaning = self._cleaning.pop(name, None)
        if cleaning is not None:
            cleaning.result()

    def catch_up(self, stored: Iterable[Run]) -> None:
        """Clean the folders of a session that was killed after it stored its last runs."""
        for run in islice(reversed(tuple(stored)), _NEWEST):
            folder = Path(run.job.get("folder") or "")
            if folder.is_absolute() and is_folder_of(folder, run.outcome.usage):
                clean(folder, [Path(part["folder"]) for part in run.job.get("parts", ())])


@contextmanager
def cleaner() -> Iterator[Cleaner]:
    """Provide a cleaner, and wait for it at the end."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="cleaner") as workers:
        yield Cleaner(workers)
