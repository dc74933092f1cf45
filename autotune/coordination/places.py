"""The places where a session makes its runs: what it holds there, and what starts the runs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace

from autotune.coordination.external_executor import ExternalExecutor
from autotune.coordination.nodes import LentNodes, Nodes
from autotune.coordination.quiet_machine import QuietMachine
from autotune.coordination.session_settings import RUNS_LOCK, SessionSettings
from autotune.display.console import Display
from autotune.errors import BusyError, NothingWorkedError, StorageError
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.card_pool import CardPool, MachinePool
from autotune.execution.core_pool import CoreClaim, CorePool, Pool, claim_purpose
from autotune.execution.executor import Executor
from autotune.execution.local_executor import LocalExecutor
from autotune.files import private_mode
from autotune.locks import IfHeld, LockFile, WaitBy, claim_when_free
from autotune.storage.address import hide_password
from autotune.storage.leases import LeaseBook
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from autotune.studyfile import NoiseMode, NoiseSection
from launchers import BatchQueue, Resources
from launchers.placement import fit_to_site
from launchers.site import Site
from objectives.base import Plan


@dataclass(frozen=True)
class SessionResources:
    """The executor of a session and what it shares out.

    Attributes:
        executor: Runs tasks.
        pool: Shares out cores and cards.
        width: How many compared runs may be in flight together.
    """

    executor: Executor
    pool: Pool
    width: int = 1


class RunPlace:
    """Where runs are made. This base class makes none: recorded runs need no machine."""

    scheduler = ""
    """The batch system that runs the jobs; empty if runs are not jobs."""
    in_folders = True
    """Whether runs have folders here."""

    def __init__(self, settings: SessionSettings, display: Display) -> None:
        """Set the session's settings; a place may change them when it is held."""
        self.settings = settings
        self.display = display

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Hold what the session needs from its start.

        Raises:
            BusyError: Another process has it.
            PausedError: A pause was requested.
        """
        yield

    def claim(self) -> None:
        """Claim what the first run needs, unless that is done.

        Raises:
            BusyError: Another process has it.
            PausedError: A pause was requested.
        """

    def leases(self, store: StudyStore) -> LeaseBook | None:  # noqa: ARG002  no run outlives its session
        """Return the leases of a study's runs; None if no run outlives its session."""
        return None

    def resources(self, leases: LeaseBook | None, workers: int) -> AbstractContextManager[SessionResources]:
        """Provide the executor of tasks and what it shares out among `workers`."""
        del leases, workers
        raise NotImplementedError

    def nodes(self, plan: Plan, least: int | None) -> Nodes:  # noqa: ARG002  no node can be chosen
        """Return the nodes on which runs can be placed; a verdict needs at `least` this many."""
        return Nodes(plan.workers)

    def quiet(self, noise: NoiseSection, mode: NoiseMode) -> QuietMachine | None:  # noqa: ARG002  others' machines
        """Return the machine that comparisons wait for; None if they do not wait."""
        return None

    @property
    def wait_by(self) -> WaitBy | None:
        """Shows the user what the session waits for; None if it does not wait."""
        return self.display.waits if self.settings.if_held is IfHeld.WAIT else None


class Here(RunPlace):
    """This machine. Its cores are claimed as late as possible: when the first run needs them."""

    _claimed: CoreClaim | None = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Release the cores at the end."""
        try:
            yield
        finally:
            if self._claimed is not None:
                self._claimed.release()

    def claim(self) -> None:
        """Claim the cores, unless that is done."""
        settings = self.settings
        if self._claimed is None:
            with settings.pause.waiting():
                work = claim_purpose(settings.name)
                self._claimed = CoreClaim.claim(settings.machine.cpus, wait_by=self.wait_by, work=work)

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the cores and cards of this machine."""
        del leases, workers
        settings = self.settings
        cards = CardPool(claim_purpose(settings.name), wait_by=self.wait_by, waiting=settings.pause.waiting)
        with closing(cards):
            pool = MachinePool(CorePool(settings.machine.cpus), cards)
            yield SessionResources(LocalExecutor(settings.launcher), pool)

    def quiet(self, noise: NoiseSection, mode: NoiseMode) -> QuietMachine | None:
        """Return this machine, if disturbed runs do not count."""
        return QuietMachine.of(self.settings.machine.cpus, noise, mode)


class OnCluster(RunPlace):
    """The nodes of a Ray cluster, which the session joins."""

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Join the cluster; its nodes become the machine of the session."""
        from autotune.execution.ray_executor import join_cluster  # noqa: PLC0415  takes seconds

        settings = self.settings
        assert settings.ray_address is not None
        with join_cluster(settings.ray_address, settings.runs, self.display.line, settings.ray_nodes) as cluster:
            self._cluster = cluster
            self.settings = replace(settings, machine=cluster.machine)
            yield

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the nodes of the cluster."""
        del leases, workers
        from autotune.execution.ray_executor import ClusterExecutor  # noqa: PLC0415  takes seconds

        yield SessionResources(ClusterExecutor(self._cluster, self.settings.launcher), self._cluster.pool)

    def nodes(self, plan: Plan, least: int | None) -> Nodes:
        """Return the nodes of the cluster."""
        del plan, least
        return Nodes(lambda _: [node.name for node in self._cluster.pool.nodes])


class InQueue(RunPlace):
    """A batch system that runs jobs, which outlive the session."""

    def __init__(self, settings: SessionSettings, display: Display, queue: BatchQueue) -> None:
        """Submit jobs to `queue`."""
        super().__init__(settings, display)
        self._queue = queue
        self.scheduler = queue.site.scheduler

    @contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the folder of the runs, which a study of the same name in another storage may also use.

        On one machine the claim of the cores keeps two studies apart; jobs of a batch system share no cores.
        """
        settings = self.settings
        path = settings.runs / RUNS_LOCK
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = LockFile.open(path, private_mode(path.parent))
        except OSError as error:
            msg = f"cannot write {path}: {error.strerror}; use --runs to keep runs elsewhere"
            raise StorageError(msg) from error

        def claim() -> None:
            # On a file system without locks, other sessions cannot be detected.
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
                claim_when_free(claim, self.wait_by)
            file.sign(f"{claim_purpose(settings.name)}, storage {hide_password(settings.url)}")
            yield

    def leases(self, store: StudyStore) -> LeaseBook:
        """Return the leases of the study, with the job ids of its runs."""
        return store.leases()

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the batch system; `workers` runs are compared side by side."""
        assert leases is not None
        executor = BatchExecutor(self._queue, leases.note_job, self.display.line)
        yield SessionResources(executor, QueuePool(self._queue.site), workers)

    def nodes(self, plan: Plan, least: int | None) -> Nodes:
        """Return the nodes that the batch system lends, if a verdict needs several."""
        if least is None:
            return Nodes(plan.workers)
        return Nodes(lent=LentNodes(self._queue, least, self.display.line))


class ByPrograms(RunPlace):
    """Other programs, which request and report runs. Their runs have no folders here, and outlive the session."""

    in_folders = False

    def __init__(self, settings: SessionSettings, display: Display, executor: ExternalExecutor) -> None:
        """Hand out runs by an `executor`."""
        super().__init__(settings, display)
        self._executor = executor

    def leases(self, store: StudyStore) -> LeaseBook:
        """Return the leases of the study, which also name the program that has a run."""
        return self._executor.leases(store.leases())

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the executor that hands out runs."""
        del leases, workers
        yield SessionResources(self._executor, QueuePool())


class QueuePool:
    """A pool without limits: the batch system, or the programs that make the runs, share out the resources."""

    def __init__(self, site: Site | None = None) -> None:
        """Set the site whose nodes jobs get; None for whatever they ask for."""
        self._site = site

    def take(self, wanted: Resources) -> Resources | None:
        """Return what a job requests; it waits for that in the queue."""
        return wanted if self._site is None else fit_to_site(wanted, self._site)

    def give_back(self, taken: Resources) -> None:
        """Do nothing: the batch system knows that the job has ended."""


def place_of(settings: SessionSettings, display: Display, *, makes_runs: bool = True) -> RunPlace:
    """Return where the runs of a session are made."""
    if settings.external is not None:
        return ByPrograms(settings, display, settings.external)
    if not makes_runs:
        return RunPlace(settings, display)
    if settings.queue is not None:
        return InQueue(settings, display, settings.queue)
    return (Here if settings.ray_address is None else OnCluster)(settings, display)


@contextmanager
def hold_study(
    settings: SessionSettings, display: Display, *, makes_runs: bool = True
) -> Iterator[tuple[StudyLock, RunPlace]]:
    """Lock the study, then hold the place where its runs are made.

    Raises:
        BusyError: Another process has the study.
        PausedError: A pause was requested.
    """
    with settings.pause.waiting():
        lock = StudyLock.acquire(settings.url, settings.name, settings.if_held, display.waits)
    try:
        place = place_of(settings, display, makes_runs=makes_runs)
        with place.hold():
            yield lock, place
    finally:
        try:
            lock.check()
        finally:
            lock.release()


@contextmanager
def session_resources(place: RunPlace, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
    """Provide the resources of a session, and leave no task behind.

    Jobs of a batch system are left to the next session, unless none of the study's runs worked.
    """
    with place.resources(leases, workers) as made:
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
