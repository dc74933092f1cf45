"""Processes end when the one that started them does, however that ended."""

import multiprocessing
import os
import shutil
import signal
import threading
from pathlib import Path


def end_with_parent(folder: Path | None = None) -> None:
    """Let this process end when its parent does, and remove a folder that the parent would have removed."""
    threading.Thread(target=_wait, args=(folder,), daemon=True).start()


def end_loader_with_parent(number: int) -> None:
    """Do so in a loader process, and on nothing else: torch looks every five seconds only, and ends on SIGTERM.

    A signal may reach all processes of a job, and its last step still needs a batch.
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
