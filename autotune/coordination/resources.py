"""The resources of a session: what it must hold, what runs its tasks, and where."""

from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace

from autotune.coordination.session_settings import RUNS_LOCK, SessionSettings
from autotune.display.console import Display
from autotune.errors import BusyError, NothingWorkedError, StorageError
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.card_pool import CardPool, MachinePool
from autotune.execution.core_pool import CoreClaim, CorePool, Pool, work_on
from autotune.execution.executor import Executor
from autotune.locks import IfHeld, LockFile, when_free
from autotune.storage.address import shown
from autotune.storage.leases import LeaseBook
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from launchers import Resources
from launchers.placement import taken
from launchers.site import Site


class QueuePool:
    """What a batch system has, or other programs that make runs: they share it out by themselves."""

    def __init__(self, site: Site | None = None) -> None:
        """Share out the nodes of a site; without one, whatever is wanted."""
        self._site = site

    def take(self, wanted: Resources) -> Resources | None:
        """Return what a job gets: it waits in the queue for it."""
        return wanted if self._site is None else taken(wanted, self._site)

    def give_back(self, taken: Resources) -> None:
        """Take note that a job has ended."""


class SessionCores:
    """The cores of a session: claimed when its first run needs them, after all that can be checked without them."""

    def __init__(self, settings: SessionSettings | None = None, display: Display | None = None) -> None:
        """Claim the machine's cores as the settings say, once `claim` is called; nothing without settings."""
        self._settings = settings
        self._display = display
        self._claimed: CoreClaim | None = None

    def claim(self) -> None:
        """Claim the cores, unless that is done.

        Raises:
            BusyError: somebody else has one of them.
            PausedError: a pause was asked for.
        """
        settings, display = self._settings, self._display
        if settings is None or display is None or self._claimed is not None:
            return
        wait_by = display.waits if settings.if_held is IfHeld.WAIT else None
        with settings.pause.waiting():
            self._claimed = CoreClaim.claim(settings.machine.cpus, wait_by=wait_by, work=work_on(settings.name))

    def release(self) -> None:
        """Give the cores up."""
        if self._claimed is not None:
            self._claimed.release()


@dataclass(frozen=True)
class HeldStudy:
    """A study that is held: its lock, the settings of its session as they are then, and the cores, still to claim."""

    lock: StudyLock
    settings: SessionSettings
    cores: SessionCores


@contextmanager
def held(settings: SessionSettings, display: Display, *, claim: bool) -> Iterator[HeldStudy]:
    """Hold the study, and its cluster. Without `claim` nothing runs.

    Raises:
        BusyError: somebody else has the study.
        PausedError: a pause was asked for.
    """
    with _locked(settings, display) as lock:
        if not claim or settings.external is not None:
            yield HeldStudy(lock, settings, SessionCores())
            return
        if settings.queue is not None:
            with held_runs(settings, display):
                yield HeldStudy(lock, settings, SessionCores())
            return
        if settings.ray_address is not None:
            from autotune.execution.ray_executor import joined_cluster  # noqa: PLC0415

            with joined_cluster(settings.ray_address, settings.runs, display.line, settings.ray_nodes) as cluster:
                yield HeldStudy(lock, replace(settings, machine=cluster.machine, cluster=cluster), SessionCores())
            return
        cores = SessionCores(settings, display)
        try:
            yield HeldStudy(lock, settings, cores)
        finally:
            cores.release()


@contextmanager
def _locked(settings: SessionSettings, display: Display) -> Iterator[StudyLock]:
    with settings.pause.waiting():
        lock = StudyLock.acquire(settings.url, settings.name, settings.if_held, display.waits)
    try:
        yield lock
    finally:
        lock.release()


@contextmanager
def held_runs(settings: SessionSettings, display: Display) -> Iterator[None]:
    """Hold the folder of a study's runs: a study of the same name in another storage may keep its own there.

    On one machine the cores keep two such studies apart; jobs of a batch system have none in common.

    Raises:
        BusyError: another study makes its runs there.
        PausedError: a pause was asked for.
        StorageError: the folder cannot be written to.
    """
    wait_by = display.waits if settings.if_held is IfHeld.WAIT else None
    path = settings.runs / RUNS_LOCK
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = LockFile.open(path, 0o644)
    except OSError as error:
        msg = f"cannot write {path}: {error.strerror}; use --runs to keep runs elsewhere"
        raise StorageError(msg) from error

    def claim() -> None:
        # A file system without locks: nobody can tell.
        with suppress(OSError):
            if not file.lock():
                msg = (
                    f"{settings.runs} has the runs of a study in another storage, which is being worked on by "
                    f"{file.holder() or 'another process'}: wait for it with --wait, or use --runs to keep runs "
                    "elsewhere"
                )
                raise BusyError(msg)

    with closing(file):
        with settings.pause.waiting():
            when_free(claim, wait_by)
        file.sign(f"{work_on(settings.name)}, storage {shown(settings.url)}")
        yield


def leases_of(settings: SessionSettings, store: StudyStore) -> LeaseBook | None:
    """Return the leases of a study's runs; None where no run outlives its session."""
    if settings.external is not None:
        return settings.external.leases(store.leases())
    return store.leases() if settings.queue is not None else None


@dataclass(frozen=True)
class SessionResources:
    """Who runs tasks, and on what. `width` is how many runs that are compared with each other go on side by side."""

    executor: Executor
    pool: Pool
    width: int = 1


@contextmanager
def session_resources(
    settings: SessionSettings, leases: LeaseBook | None, display: Display, workers: int
) -> Iterator[SessionResources]:
    """Provide the executor of tasks: jobs of a batch system, the nodes of the cluster that was joined, or this machine.

    However this ends, no task is left behind; but jobs of a batch system are, for the next session, unless none of the
    study's runs worked.
    """
    with _made(settings, leases, display, workers) as made:
        try:
            yield made
        except NothingWorkedError:
            made.executor.cancel_all()
            if leases is not None:
                for lease in leases.all():
                    leases.release(lease.place)
            raise
        except BaseException:
            made.executor.leave()
            raise
        made.executor.cancel_all()


@contextmanager
def _made(
    settings: SessionSettings, leases: LeaseBook | None, display: Display, workers: int
) -> Iterator[SessionResources]:
    if settings.queue is not None:
        assert leases is not None
        executor = BatchExecutor(settings.queue, leases.note_job, display.line)
        yield SessionResources(executor, QueuePool(settings.queue.site), workers)
        return
    if settings.external is not None:
        yield SessionResources(settings.external, QueuePool())
        return
    from autotune.execution.ray_executor import ClusterExecutor, RayExecutor, local_cluster  # noqa: PLC0415  jobs need no Ray

    if settings.cluster is not None:
        yield SessionResources(ClusterExecutor(settings.cluster, settings.launcher), settings.cluster.pool)
        return
    wait_by = display.waits if settings.if_held is IfHeld.WAIT else None
    cards = CardPool(work_on(settings.name), wait_by=wait_by, waiting=settings.pause.waiting)
    with local_cluster(settings.machine.cores), closing(cards):
        pool = MachinePool(CorePool(settings.machine.cpus), cards)
        yield SessionResources(RayExecutor(settings.machine.cores, settings.launcher), pool)
