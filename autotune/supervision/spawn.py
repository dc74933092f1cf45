"""Start a study under a shim, and signal it."""

import errno
import json
import os
import resource
import secrets
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from autotune.supervision import shim
from autotune.supervision.desired_state import Order, Task
from autotune.supervision.reconcile import Action
from autotune.supervision.study_folder import STATUS, Process
from launchers.own_python import own_python

_PATIENCE_S = 60.0
_SIGNALS = {Action.PAUSE: signal.SIGUSR1, Action.STOP: signal.SIGTERM, Action.KILL: signal.SIGKILL}


class StartError(Exception):
    """A shim could not be started; a later attempt may work."""


@dataclass(frozen=True)
class Starter:
    """Starts studies.

    Attributes:
        url: Storage of the studies.
        cwd: Folder in which they run.
        log_bytes: Size limit of each of the two parts of a log.
        descriptors: Limit of open files for each study: the limit of this process when this object was made, so that
            measurements do not depend on the process that starts the study.
    """

    url: str
    cwd: Path
    log_bytes: int
    descriptors: int = field(default_factory=lambda: resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def start(self, folder: Path, order: Order, deaths: int) -> None:
        """Start the ordered study under a shim in `folder`, after `deaths` starts without a result.

        Raises:
            StartError: The shim cannot be started now.
        """
        spec = {
            "command": command(order, folder / STATUS),
            "cwd": os.fspath(self.cwd),
            "token": secrets.token_hex(8),
            "serial": order.serial,
            "deaths": deaths,
            "log_bytes": self.log_bytes,
            "descriptors": self.descriptors,
        }
        try:
            ended = subprocess.run(
                [sys.executable, "-I", "-S", shim.__file__, os.fspath(folder)],
                input=json.dumps(spec).encode(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                # The URL may contain a password, which all users of this host could read on the command line.
                env={**os.environ, "AUTOTUNE_STORAGE": self.url},
                timeout=_PATIENCE_S,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise StartError(str(error)) from error
        if ended.returncode != 0:
            said = ended.stderr.decode(errors="replace").strip().splitlines()
            raise StartError(said[-1] if said else f"exit code {ended.returncode}")


def command(order: Order, status: Path) -> list[str]:
    """Return the command line of a study."""
    tunes = {
        "--name": order.name,
        "--trials": order.trials,
        "--timeout": None if order.timeout_s is None else f"{order.timeout_s:f}s",
        "--workers": order.workers,
        "--seed": order.seed,
        "--launcher": order.launcher,
    }
    # Confirm and ablate use the stored study, so of its options only these and the cores can be set.
    compares = {"--pairs": order.pairs, "--max-pairs": order.pairs}
    subject = os.fspath(order.file) if order.task is Task.TUNE else order.name
    options = (tunes if order.task is Task.TUNE else compares) | {"--cores": order.cores, "--status": os.fspath(status)}
    given = [word for name, value in options.items() if value is not None for word in (name, str(value))]
    # One word each, since the name of a metric may begin with a dash.
    if order.task is Task.TUNE:
        given += [f"--set={change}" for change in order.changes]
    elif order.weights:
        given.append("--weights=" + ",".join(f"{name}={weight!r}" for name, weight in order.weights.items()))
    return own_python("autotune", order.task.value, subject, *given, "--wait")


def send(action: Action, process: Process) -> None:
    """Signal a study; do nothing if its process has ended, even if its process id was reused."""
    target = process.child if action is Action.KILL else process.target
    if target is None:
        return
    with suppress(OSError):
        try:
            descriptor = os.pidfd_open(target["pid"])
        except OSError as error:
            if error.errno == errno.ENOSYS and shim.lives(target):  # Linux before 5.3
                os.kill(target["pid"], _SIGNALS[action])
            return
        try:
            # While this descriptor is open, the pid is not reused.
            if shim.lives(target):
                signal.pidfd_send_signal(descriptor, _SIGNALS[action])
        finally:
            os.close(descriptor)
