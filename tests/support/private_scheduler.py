"""The base of the private Slurm and Grid Engine: a folder, a keeper, and daemons on free ports.

The daemons are children of a *keeper* (`tests.support.keeper`). When the tests end, in whatever way, it ends the
daemons and everything that they started, and removes the folder.
"""

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from launchers.process_tree import start_time
from tests.support.keeper import ask, started
from tests.support.waiting import PATIENCE_S

_ATTEMPTS = 4


class PrivateScheduler(ABC):
    """A scheduler for the tests alone; a context manager that leaves nothing behind.

    Attributes:
        environment: The variables that its commands need.
        pids: The process of each daemon, by name.
    """

    name: str
    # Prefixes of variables that belong to another scheduler of this kind, whose job the tests may be.
    foreign: tuple[str, ...]

    def __init__(self) -> None:
        self._folder = Path()
        self._keeper: subprocess.Popen[bytes] | None = None
        self.pids: dict[str, int] = {}
        self.environment: dict[str, str] = {}

    def __enter__(self) -> Self:
        for attempt in range(1, _ATTEMPTS + 1):
            # Not the tests' own folder: the path of a socket has at most 107 characters.
            self._folder = Path(tempfile.mkdtemp(prefix="scheduler-", dir="/tmp"))
            self._folder.chmod(0o755)
            self.pids = {}
            self._keeper = started(self._folder)
            try:
                self._start_all()
            except BaseException as error:
                logs = self._logs()
                self._end_all()
                # Another process may have taken a port that was free a moment ago.
                if not isinstance(error, TimeoutError) or attempt == _ATTEMPTS:
                    raise RuntimeError(f"{self.name} did not start: {error}\n{logs}") from error
            else:
                break
        return self

    def __exit__(self, *_: object) -> None:
        self._end_all()

    def call(self, *argv: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run a command of this scheduler.

        Raises:
            subprocess.CalledProcessError: It failed, and `check` is set.
        """
        return subprocess.run(
            argv,
            env=self._own_environment(),
            capture_output=True,
            text=True,
            check=check,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
            **options,
        )

    def has_ended(self, daemon: str) -> bool:
        """Whether a daemon that was started does not run any more."""
        return start_time(self.pids[daemon]) is None

    @abstractmethod
    def _start_all(self) -> None:
        """Configure the scheduler in its folder, and start its daemons until they answer.

        Raises:
            TimeoutError: A daemon did not answer; another attempt may help.
        """

    def _spawn(self, daemon: str, argv: Sequence[str], **variables: str) -> None:
        assert self._keeper is not None
        log = self._folder / f"{daemon}.log"
        self.pids[daemon] = ask(self._keeper, argv, self._own_environment() | variables, log)

    def _end_all(self) -> None:
        if self._keeper is None:
            return
        with self._keeper as keeper:  # closes its input
            keeper.communicate(timeout=PATIENCE_S)
        self._keeper = None

    def _logs(self) -> str:
        logs = sorted([*self._folder.glob("*.log"), *self._folder.glob("spool/**/messages")])
        return "\n".join(f"{log.name}:\n{log.read_text(errors='replace')[-2000:]}" for log in logs)

    def _own_environment(self) -> dict[str, str]:
        own = {name: value for name, value in os.environ.items() if not name.startswith(self.foreign)}
        return own | self.environment


def search_path() -> str:
    """Return PATH with the folders of system programs, where daemons are."""
    return os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])


def find_program(name: str) -> str | None:
    return shutil.which(name, path=search_path())


def why_not(scheduler: str, programs: Sequence[str], packages: str) -> str | None:
    """Return why such a scheduler cannot be started here; None if it can."""
    missing = [program for program in programs if find_program(program) is None]
    if missing:
        return f"no {scheduler} to start, missing: {', '.join(missing)} (apt-get install {packages})"
    return None if os.geteuid() == 0 else f"only root can start a {scheduler} that runs jobs"


def free_ports(number: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]
