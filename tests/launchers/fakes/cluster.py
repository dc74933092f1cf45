"""A stand-in for a cluster: a scheduler's commands in a folder, for tests."""

import os
import shlex
import shutil
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from launchers.process_tree import descendants, start_time
from tests.launchers.fakes.program import PROGRAMS
from tests.launchers.fakes.state import State

FAKED = tuple(PROGRAMS)


class FakeCluster:
    """The commands of one scheduler; a context manager that leaves no job behind.

    Attributes:
        bin: The folder with its commands, to be first in PATH.
        state: Its jobs.
    """

    def __init__(self, kind: str, slots: int = 8, *, history: bool = True) -> None:
        self.kind = kind
        # Not the folder of a test, whose own files may be in the way of the job.
        self._folder = Path(tempfile.mkdtemp(prefix=f"fake-{kind}-"))
        self.bin = self._folder / "bin"
        self.state = State(self._folder)
        for name in ("bin", "active", "ended", "scripts", "runners"):
            (self._folder / name).mkdir()
        for name in PROGRAMS[kind]:
            words = [sys.executable, "-IS", str(Path(__file__).parent / "program.py"), str(self._folder), kind, name]
            (self.bin / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (self.bin / name).chmod(0o755)
        self.switch("slots", str(slots))
        if history:
            self.switch("history")

    def __enter__(self) -> "FakeCluster":
        return self

    def __exit__(self, *_: object) -> None:
        self.end_all()
        shutil.rmtree(self._folder)

    @property
    def path(self) -> str:
        """PATH with its commands first."""
        return os.pathsep.join([str(self.bin), os.environ.get("PATH", os.defpath)])

    def switch(self, name: str, value: str | None = "") -> None:
        """Set a switch (see `State`); None removes it."""
        if value is None:
            (self._folder / name).unlink(missing_ok=True)
        else:
            (self._folder / name).write_text(value)
        if name in {"slots", "held"}:
            self.state.schedule()

    @property
    def connections(self) -> int:
        """How many connections PBS's commands have opened so far."""
        return len((self._folder / "connections").read_bytes())

    def cancel(self, number: str) -> None:
        """End a job as its owner would from another shell."""
        self.state.ask(number, "cancelled")

    def preempt(self, number: str) -> None:
        """Preempt a job for another one."""
        self.state.ask(number, "preempted")

    def fail_node(self, number: str) -> None:
        """Let the node of a job fail: the job gets no time to write anything."""
        self.state.ask(number, "node failed")

    def kill(self, number: str) -> None:
        """Send SIGKILL to all of a job, as an administrator or a node without memory would."""
        self.state.ask(number, "killed")

    def end_all(self) -> None:
        """Kill all jobs and whatever they started at once."""
        self.switch("held")
        with self.state.locked():
            # A forgotten job may still run.
            runners = [int(path.name) for path in (self._folder / "runners").iterdir()]
            for runner in runners:
                # A stopped process starts nothing more while it is killed.
                with suppress(ProcessLookupError):
                    os.kill(runner, signal.SIGSTOP)
                for pid in [*descendants(runner), runner]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
        for runner in runners:
            while start_time(runner) is not None:
                time.sleep(0.005)
