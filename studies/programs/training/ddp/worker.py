"""One worker's process. Only workers import torch, so that the leading process starts at once."""

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
    """Train interval by interval, until the leading process ends the training.

    Only the leading process acts on signals, which may reach all processes of a job: a worker that ended by itself
    would prevent the last checkpoint.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(folder)
    _keep_names_of_sockets_short()
    try:
        _train(rank, settings, shared, parent, folder)
    except (RuntimeError, MemoryError, ArithmeticError, ValueError, OSError) as error:
        parent.send(failure_of(error))
    # Wait to be killed: if this process ended, others would report a lost connection first.
    parent.recv()
    sys.stderr.flush()
    os._exit(0)


def _train(rank: int, settings: Settings, shared: Shared, parent: Connection, folder: Path) -> None:
    from .trainer import Trainer

    trainer = Trainer(rank, settings, shared, folder / "meeting")
    parent.send(trainer.ready())
    while True:
        verdict: Verdict = parent.recv()
        trainer.set_reported(verdict.reported)
        interval = trainer.interval() if verdict.go_on else None
        if interval is None:
            break
        parent.send(interval)
    parent.send(trainer.end(complete=verdict.complete))


def _keep_names_of_sockets_short() -> None:
    """Use /tmp for sockets if TMPDIR is too long, as it may be in batch jobs.

    Otherwise loader processes could not pass on their batches, and the training would wait forever.
    """
    if len(os.fsencode(tempfile.gettempdir())) > _LONGEST_FOLDER:
        tempfile.tempdir = "/tmp"  # noqa: S108  what is made in it has a random name, for this user only
