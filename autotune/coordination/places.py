"""Places: where the runs of a session are made, what a session holds there, and what starts its runs."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass, replace

from autotune.coordination.external_runs import ExternalExecutor
from autotune.coordination.nodes import LentNodes, Nodes
from autotune.coordination.quiet import QuietMachine
from autotune.coordination.session_settings import RUNS_LOCK, SessionSettings
from autotune.display.console import Display
from autotune.errors import BusyError, NothingWorkedError, StorageError
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.card_pool import CardPool, MachinePool
from autotune.execution.core_pool import CoreClaim, CorePool, Pool, claim_purpose
from autotune.execution.executor import Executor
from autotune.locks import IfHeld, LockFile, WaitBy, claim_when_free
from autotune.storage.address import shown
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
    """What runs tasks, and on what. `width` is how many of the runs that are compared go on side by side."""

    executor: Executor
    pool: Pool
    width: int = 1


class RunPlace:
    """Where runs are made, from when a session holds that. This one makes none: what was recorded needs no machine."""

    scheduler = ""
    """The batch system whose jobs the runs are; empty if they are none."""
    in_folders = True
    """Whether runs have folders here."""

    def __init__(self, settings: SessionSettings, display: Display) -> None:
        """Hold nothing yet. `settings` are those of the session, as they are when the place is held."""
        self.settings = settings
        self.display = display

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold what the session needs from its start.

        Raises:
            BusyError: somebody else has it.
            PausedError: a pause was asked for.
        """
        yield

    def claim(self) -> None:
        """Claim what the first run needs, unless that is done.

        Raises:
            BusyError: somebody else has it.
            PausedError: a pause was asked for.
        """

    def leases(self, store: StudyStore) -> LeaseBook | None:  # noqa: ARG002  no run outlives its session
        """Return the leases of a study's runs; None where no run outlives its session."""
        return None

    def resources(self, leases: LeaseBook | None, workers: int) -> AbstractContextManager[SessionResources]:
        """Provide the executor of tasks, and what it shares out among them, for so many `workers`."""
        del leases, workers
        raise NotImplementedError

    def nodes(self, plan: Plan, least: int | None) -> Nodes:  # noqa: ARG002  nobody can choose
        """Return the nodes on which runs can be placed; a verdict is to speak for so many at `least`."""
        return Nodes(plan.workers)

    def quiet(self, noise: NoiseSection, mode: NoiseMode) -> QuietMachine | None:  # noqa: ARG002  others' machines
        """Return the machine that comparisons wait for; None where they do not."""
        return None

    @property
    def wait_by(self) -> WaitBy | None:
        """Tells a user for whom the session waits; None if it does not wait."""
        return self.display.waits if self.settings.if_held is IfHeld.WAIT else None


class Here(RunPlace):
    """This machine. Its cores are claimed when the first run needs them, after all that can be checked without them."""

    _claimed: CoreClaim | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Give the cores up at the end."""
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
        from autotune.execution.ray_executor import RayExecutor, local_cluster  # noqa: PLC0415  jobs need no Ray

        settings = self.settings
        cards = CardPool(claim_purpose(settings.name), wait_by=self.wait_by, waiting=settings.pause.waiting)
        with local_cluster(settings.machine.cores), closing(cards):
            pool = MachinePool(CorePool(settings.machine.cpus), cards)
            yield SessionResources(RayExecutor(settings.machine.cores, settings.launcher), pool)

    def quiet(self, noise: NoiseSection, mode: NoiseMode) -> QuietMachine | None:
        """Return this machine, if runs that others disturb do not count."""
        return QuietMachine.of(self.settings.machine.cpus, noise, mode)


class OnCluster(RunPlace):
    """The nodes of a Ray cluster, which the session joins."""

    @contextmanager
    def held(self) -> Iterator[None]:
        """Join the cluster; its nodes are the machine of the session then."""
        from autotune.execution.ray_executor import joined_cluster  # noqa: PLC0415  jobs need no Ray

        settings = self.settings
        assert settings.ray_address is not None
        with joined_cluster(settings.ray_address, settings.runs, self.display.line, settings.ray_nodes) as cluster:
            self._cluster = cluster
            self.settings = replace(settings, machine=cluster.machine)
            yield

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the nodes of the cluster."""
        del leases, workers
        from autotune.execution.ray_executor import ClusterExecutor  # noqa: PLC0415  jobs need no Ray

        yield SessionResources(ClusterExecutor(self._cluster, self.settings.launcher), self._cluster.pool)

    def nodes(self, plan: Plan, least: int | None) -> Nodes:
        """Return the nodes of the cluster."""
        del plan, least
        return Nodes(lambda _: [node.name for node in self._cluster.pool.nodes])


class InQueue(RunPlace):
    """A batch system, whose jobs the runs are. They outlive the session."""

    def __init__(self, settings: SessionSettings, display: Display, queue: BatchQueue) -> None:
        """Submit jobs to `queue`."""
        super().__init__(settings, display)
        self._queue = queue
        self.scheduler = queue.site.scheduler

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the folder of the runs: a study of the same name in another storage may keep its own there.

        On one machine the cores keep two such studies apart; jobs of a batch system have none in common.
        """
        settings = self.settings
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
                claim_when_free(claim, self.wait_by)
            file.sign(f"{claim_purpose(settings.name)}, storage {shown(settings.url)}")
            yield

    def leases(self, store: StudyStore) -> LeaseBook:
        """Return the leases of the study, with the jobs of its runs."""
        return store.leases()

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide the batch system; as many runs are compared side by side as there are workers."""
        assert leases is not None
        executor = BatchExecutor(self._queue, leases.note_job, self.display.line)
        yield SessionResources(executor, QueuePool(self._queue.site), workers)

    def nodes(self, plan: Plan, least: int | None) -> Nodes:
        """Return the nodes that the batch system lends, if a verdict is to speak for several."""
        if least is None:
            return Nodes(plan.workers)
        return Nodes(lent=LentNodes(self._queue, least, self.display.line))


class ByPrograms(RunPlace):
    """Other programs, which ask for runs and report them. Their runs have no folders here, and outlive the session."""

    in_folders = False

    def __init__(self, settings: SessionSettings, display: Display, executor: ExternalExecutor) -> None:
        """Hand runs out by an `executor`."""
        super().__init__(settings, display)
        self._executor = executor

    def leases(self, store: StudyStore) -> LeaseBook:
        """Return the leases of the study, which also say which program has a run."""
        return self._executor.leases(store.leases())

    @contextmanager
    def resources(self, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
        """Provide what hands runs out."""
        del leases, workers
        yield SessionResources(self._executor, QueuePool())


class QueuePool:
    """What a batch system has, or other programs that make runs: they share it out by themselves."""

    def __init__(self, site: Site | None = None) -> None:
        """Share out the nodes of a site; without one, whatever is wanted."""
        self._site = site

    def take(self, wanted: Resources) -> Resources | None:
        """Return what a job gets: it waits in the queue for it."""
        return wanted if self._site is None else fit_to_site(wanted, self._site)

    def give_back(self, taken: Resources) -> None:
        """Take note that a job has ended."""


def place_of(settings: SessionSettings, display: Display, *, makes_runs: bool = True) -> RunPlace:
    """Return where the runs of a session are made, by its settings."""
    if settings.external is not None:
        return ByPrograms(settings, display, settings.external)
    if not makes_runs:
        return RunPlace(settings, display)
    if settings.queue is not None:
        return InQueue(settings, display, settings.queue)
    return (Here if settings.ray_address is None else OnCluster)(settings, display)


@contextmanager
def held(
    settings: SessionSettings, display: Display, *, makes_runs: bool = True
) -> Iterator[tuple[StudyLock, RunPlace]]:
    """Hold the study, then the place where its runs are made.

    Raises:
        BusyError: somebody else has the study.
        PausedError: a pause was asked for.
    """
    with settings.pause.waiting():
        lock = StudyLock.acquire(settings.url, settings.name, settings.if_held, display.waits)
    try:
        place = place_of(settings, display, makes_runs=makes_runs)
        with place.held():
            yield lock, place
    finally:
        lock.release()


@contextmanager
def session_resources(place: RunPlace, leases: LeaseBook | None, workers: int) -> Iterator[SessionResources]:
    """Provide the executor of tasks of a session.

    However this ends, no task is left behind; but jobs of a batch system are, for the next session, unless none of the
    study's runs worked.
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
