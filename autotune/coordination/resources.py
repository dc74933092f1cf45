"""The crew of a session: what it must hold, who runs its tasks, and on what."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace

from autotune.coordination.coordinators import Company, new_holder
from autotune.coordination.session_settings import Place
from autotune.display.console import Display
from autotune.errors import NothingWorkedError, StorageError
from autotune.execution.batch_executor import JobExecutor
from autotune.execution.core_pool import CoreClaim, CorePool, Pool
from autotune.execution.executor import Executor
from autotune.storage.address import lock_path
from autotune.storage.study_lock import IfHeld, StudyLock
from autotune.storage.study_store import StudyStore
from launchers import Resources


class QueuePool:
    """What a batch system has, or who asks at a desk: it shares it out by itself, to as many jobs as it takes."""

    def take(self, wanted: Resources) -> Resources | None:
        """Return what is wanted: the job waits in the queue for it."""
        return wanted

    def give_back(self, taken: Resources) -> None:
        """Take note that a job has ended."""


@contextmanager
def held(place: Place, display: Display, *, claim: bool) -> Iterator[Place]:
    """Hold the study, and its cores or its cluster; provide the place as it is then.

    A study on a storage for several coordinators is held by nobody. Without `claim` nothing runs.

    Raises:
        BusyError: somebody else has the study or the cores.
        PausedError: a pause was asked for.
    """
    with nullcontext() if place.shared else _locked(place, display):
        if not claim or place.queue is not None or place.desk is not None:
            yield place
            return
        if place.ray_address is not None:
            from autotune.execution.ray_executor import joined_cluster  # noqa: PLC0415

            with joined_cluster(place.ray_address, place.runs, display.line, place.ray_nodes) as cluster:
                yield replace(place, machine=cluster.machine, cluster=cluster)
            return
        wait_by = display.waits if place.if_held is IfHeld.WAIT else None
        with place.pause.waiting():
            cores = CoreClaim.claim(place.machine.cpus, wait_by=wait_by)
        try:
            yield place
        finally:
            cores.release()


@contextmanager
def _locked(place: Place, display: Display) -> Iterator[None]:
    with place.pause.waiting():
        lock = StudyLock.acquire(lock_path(place.url, place.name), place.name, place.if_held, display.waits)
    try:
        yield
    finally:
        lock.release()


@contextmanager
def company_of(place: Place, store: StudyStore) -> Iterator[Company | None]:
    """Provide the other coordinators of a study; None where there can be none, and no run outlives its own."""
    if not place.shared and place.queue is None and place.desk is None:
        yield None
        return
    holder = new_holder()
    joined = Company if place.desk is None else place.desk.company
    company = joined(store.leases(holder), holder, not place.shared)
    company.join()
    try:
        yield company
    finally:
        with suppress(StorageError):
            company.leave()


@dataclass(frozen=True)
class Crew:
    """Who runs tasks, and on what. `width` is how many runs that are compared with each other go on side by side."""

    executor: Executor
    pool: Pool
    width: int = 1


@contextmanager
def crew(place: Place, company: Company | None, display: Display, workers: int) -> Iterator[Crew]:
    """Provide who runs tasks: jobs of a batch system, the nodes of the cluster that was joined, or this machine.

    However this ends, no task is left behind; but jobs of a batch system are, for the next session, unless none of the
    study's runs worked.
    """
    with _made(place, company, display, workers) as made:
        try:
            yield made
        except NothingWorkedError:
            made.executor.cancel_all()
            if company is not None:
                company.give_all_up()
            raise
        except BaseException:
            made.executor.leave()
            raise
        made.executor.cancel_all()


@contextmanager
def _made(place: Place, company: Company | None, display: Display, workers: int) -> Iterator[Crew]:
    if place.queue is not None:
        assert company is not None
        yield Crew(JobExecutor(place.queue, company.note_job, display.line), QueuePool(), workers)
        return
    if place.desk is not None:
        yield Crew(place.desk, QueuePool())
        return
    from autotune.execution.ray_executor import ClusterExecutor, RayExecutor, local_cluster  # noqa: PLC0415  jobs need no Ray

    if place.cluster is not None:
        yield Crew(ClusterExecutor(place.cluster, place.launcher), place.cluster.pool)
        return
    with local_cluster(place.machine.cores):
        yield Crew(RayExecutor(place.machine.cores, place.launcher), CorePool(place.machine.cpus))
