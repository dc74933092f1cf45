"""One worker's process. torch is imported in it only: the leading process starts at once without."""

import os
import signal
import sys
import tempfile
from multiprocessing.connection import Connection
from pathlib import Path

from orphans import end_with_parent

from .failure import failure_of
from .messages import Shared, Verdict
from .options import Settings

# The name of a socket has 107 bytes at most (unix(7)), of which multiprocessing takes 32 for its own part.
_LONGEST_FOLDER = 75


def work(rank: int, settings: Settings, shared: Shared, parent: Connection, folder: Path) -> None:
    """Train, interval by interval, as long as the leading process says so.

    Only the leading process is to heed signals. They may reach all processes of a job: a worker that ends by itself
    would take the checkpoint with it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(folder)
    _keep_names_of_sockets_short()
    try:
        _train(rank, settings, shared, parent, folder)
    except (RuntimeError, MemoryError, ArithmeticError, ValueError, OSError) as error:
        parent.send(failure_of(error))
    # Until this process is killed: if it ended, others would report a lost connection first.
    parent.recv()
    sys.stderr.flush()
    os._exit(0)


def _train(rank: int, settings: Settings, shared: Shared, parent: Connection, folder: Path) -> None:
    from .trainer import Trainer

    trainer = Trainer(rank, settings, shared, folder / "meeting")
    parent.send(trainer.ready())
    while True:
        verdict: Verdict = parent.recv()
        trainer.take_note(verdict.reported)
        interval = trainer.interval() if verdict.go_on else None
        if interval is None:
            break
        parent.send(interval)
    parent.send(trainer.end(complete=verdict.complete))


def _keep_names_of_sockets_short() -> None:
    """Choose another folder for them where TMPDIR is too long, as batch systems' may be.

    A loader process would have no way to hand over its batches, and the training would wait for them for ever.
    """
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"  # noqa: S108  what is made in it has a random name, for this user only
