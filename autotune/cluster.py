"""Where Ray lives: a private Ray instance for one study, which places its tasks.

Ray counts cores; which ones a task may use is decided by the coordinator (`autotune.cores`) and enforced by the
launcher. Ray's own processes end with the coordinator, also when that is killed.
"""

import logging
import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

# Read by Ray when it is imported: no usage statistics leave the machine, and no copy of the environment is made.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
# Ray would let everybody else on the machine go before its workers, and so before the runs that are measured.
os.environ.setdefault("RAY_worker_niceness", "0")

import ray
from ray.exceptions import RayError, RayTaskError

from autotune.cores import user_folder
from autotune.outcome import Outcome
from autotune.trial import Task, run_task
from launchers import Launcher
from launchers.local import end_with_this_process
from objectives.base import FailureKind

# Trials pass small values only; Ray's default is a third of the machine's memory.
_OBJECT_STORE_BYTES = 80 * 2**20


class RayExecutor:
    """Runs tasks as Ray tasks that hold as many of Ray's cores as their jobs have."""

    def __init__(self, cores: int, launcher: Launcher) -> None:
        """Use the running Ray instance, which has `cores`."""
        self._cores = cores
        self._launcher = launcher
        self._remote = ray.remote(max_retries=0)(run_task)
        self._running: dict[ray.ObjectRef[Outcome], Task] = {}

    def submit(self, task: Task) -> None:
        """Start a task."""
        cores = min(max(1, task.job.resources.cores), self._cores)
        reference = self._remote.options(num_cpus=cores).remote(task, self._launcher)
        self._running[reference] = task

    def wait(self, timeout_s: float) -> Sequence[tuple[Task, Outcome]]:
        """Return the tasks that ended since the last call, after at most `timeout_s`."""
        if not self._running:
            return []
        ready, _ = ray.wait(list(self._running), num_returns=1, timeout=timeout_s)
        return [(task, _outcome(reference, task)) for reference in ready for task in [self._running.pop(reference)]]

    def cancel_all(self) -> None:
        """Stop all running tasks; a worker that is killed takes its job with it."""
        for reference in self._running:
            ray.cancel(reference, force=True)
        self._running.clear()


def _outcome(reference: "ray.ObjectRef[Outcome]", task: Task) -> Outcome:
    try:
        return ray.get(reference)
    except RayTaskError as error:
        message = f"a fault in autotune or in an objective: {error.cause!r}"
    except RayError as error:
        message = f"the worker that ran the trial is gone: {str(error).splitlines()[0]}"
    return Outcome(failure=FailureKind.INFRASTRUCTURE_ERROR, code="worker", message=message, attempts=task.attempt)


@contextmanager
def local_cluster(cores: int) -> Iterator[None]:
    """Run a private Ray instance on this machine while the context lasts."""
    folder = _fresh_folder()
    # Ray announces at every start that its own token protects it.
    logging.getLogger("ray").setLevel(logging.ERROR)
    end_with_this_process()
    try:
        ray.init(
            address="local",
            num_cpus=cores,
            num_gpus=0,
            _node_ip_address="127.0.0.1",
            include_dashboard=False,
            log_to_driver=False,
            configure_logging=False,
            logging_level=logging.ERROR,
            object_store_memory=_OBJECT_STORE_BYTES,
            _temp_dir=str(folder),
        )
        # A batch system, or `kill`, asks so: it is the same as Ctrl-C. Ray's own answer is a trace of its C++.
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        yield
    finally:
        ray.shutdown()
        shutil.rmtree(folder, ignore_errors=True)


def _fresh_folder() -> Path:
    """Return a new folder for Ray's files, and remove those of coordinators that were killed.

    Short on purpose: Ray puts sockets there, whose paths must stay under 107 bytes.
    """
    base = user_folder()
    for old in base.glob("ray-*"):
        owner = old.name.removeprefix("ray-")
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            shutil.rmtree(old, ignore_errors=True)
    folder = base / f"ray-{os.getpid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder
