"""One worker's process. torch is imported in it only: the leading process starts at once without."""

import os
import signal
import sys
from multiprocessing.connection import Connection
from pathlib import Path

from .failure import failure_of
from .messages import Brake, Verdict
from .options import Settings
from .orphans import end_with_parent


def work(rank: int, settings: Settings, brake: Brake, parent: Connection, folder: Path) -> None:
    """Train, interval by interval, as long as the leading process says so.

    Only the leading process is to heed signals. They may reach all processes of a job: a worker that ends by itself
    would take the checkpoint with it.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    end_with_parent(folder)
    try:
        _train(rank, settings, brake, parent, folder)
    except (RuntimeError, MemoryError, ArithmeticError, ValueError, OSError) as error:
        parent.send(failure_of(error))
    # Until this process is killed: if it ended, others would report a lost connection first.
    parent.recv()
    sys.stderr.flush()
    os._exit(0)


def _train(rank: int, settings: Settings, brake: Brake, parent: Connection, folder: Path) -> None:
    from .trainer import Trainer

    trainer = Trainer(rank, settings, folder / "meeting")
    parent.send(trainer.ready())
    while True:
        verdict: Verdict = parent.recv()
        trainer.take_note(verdict.reported)
        interval = trainer.interval(brake) if verdict.go_on else None
        if interval is None:
            break
        parent.send(interval)
    parent.send(trainer.end())
