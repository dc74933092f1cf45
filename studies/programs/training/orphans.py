"""Ends processes when their parent ends, even if it was killed."""

import multiprocessing
import os
import shutil
import signal
import threading
from pathlib import Path


def end_with_parent(folder: Path | None = None) -> None:
    """End this process with its parent, and then remove a folder that the parent could not remove."""
    threading.Thread(target=_wait, args=(folder,), daemon=True).start()


def end_loader_with_parent(number: int) -> None:
    """End a loader process with its parent, but not on signals.

    torch checks the parent only every five seconds, and ends loaders on SIGTERM. A signal may reach all processes of a
    job, whose last step still needs a batch.
    """
    del number
    for ignored in (signal.SIGTERM, signal.SIGINT):
        signal.signal(ignored, signal.SIG_IGN)
    end_with_parent()


def _wait(folder: Path | None) -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)
