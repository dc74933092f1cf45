"""Open a study: lock it, prepare it for the place where it runs, and provide what makes its runs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from autotune.comparison.findings import standings_of
from autotune.coordination.cleaner import cleaner
from autotune.coordination.disturbances import Disturbances, expected_runs
from autotune.coordination.kept_results import store_kept_results
from autotune.coordination.places import RunPlace, hold_study, session_resources
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.coordination.run_registry import RunRegistry
from autotune.coordination.session_settings import SessionSettings, storage_patience_s
from autotune.coordination.walltime import WallTimes
from autotune.display.console import Display
from autotune.errors import AutotuneError, CannotRunHereError, ChangedProgramError, StorageError, StudyFileError
from autotune.execution.halves import Halves
from autotune.execution.run_folder import only_ours
from autotune.execution.user_folder import other_folder_note
from autotune.files import sweep_discarded
from autotune.held_folders import temporary_folder
from autotune.locks import IfHeld
from autotune.machines.provenance import SessionFacts, session_facts
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.recognition import of_program
from autotune.planning.duets import duet_obstacle, duet_refusal, halves_of
from autotune.planning.metering import meter_obstacle, shared_meter
from autotune.planning.missing_values import missing_values
from autotune.planning.prepare import Prepared, prepare, secret_notes
from autotune.records.study import REPLAY_NOTICE
from autotune.scheduling.memory_bounds import carry_over_excess
from autotune.storage.address import state_folder
from autotune.storage.connection import Patience
from autotune.storage.damage import left_out_if_damaged
from autotune.storage.stored_study import check_continues, find_stored_studies, open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_lock import StudyLock
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from autotune.studyfile.definition import Definition
from autotune.tuning.rereading import reread
from autotune.tuning.simulated_runs import simulated_runs
from launchers import Job
from launchers.local import end_jobs_below as end_left_over
from objectives import registry
from objectives.base import Context, MemoryNeed, Plan


@dataclass(frozen=True)
class Opened:
    """A study that this session holds, prepared for the place where it runs.

    Attributes:
        study: The study file.
        lock: The lock on the study.
        place: Where its runs are made.
        store: The stored study.
        prepared: The plan and the space of the study on this machine.
        facts: Facts of the session, stored with each run.
        display: What the session shows.
        read_again: Whether opening read all kept outputs again, because the way of reading changed.
    """

    study: StudyFile
    lock: StudyLock
    place: RunPlace
    store: StudyStore
    prepared: Prepared
    facts: SessionFacts
    display: Display
    read_again: bool = False

    @property
    def settings(self) -> SessionSettings:
        """The settings of the session, as its place completed them."""
        return self.place.settings


_EXTERNAL = (
    "the runs of study {name!r} (objective = 'external') are made by another program, which asks for configurations: "
    "use `autotune serve`, or autotune.asktell.AskTell in Python"
)
_NOT_EXTERNAL = (
    "study {study.name!r} (objective = {study.objective!r}) makes its runs itself: use `autotune study`; "
    "to ask and tell, its objective must be 'external'"
)


@contextmanager
def open_study(
    study: StudyFile,
    requested: SessionSettings,
    display: Display,
    check: Callable[[Prepared], None] = lambda _: None,
    *,
    is_watched: bool = False,
) -> Iterator[Opened]:
    """Lock a study and prepare it to run here.

    Args:
        study: The study file.
        requested: The settings of the session.
        display: Shows what happens.
        check: Checks what was prepared, before the session waits for cores.
        is_watched: Whether the study is only checked again (`autotune watch`). It may then differ from the stored
            study, because `watch` looks for such a difference, and its trials stay as they are.

    Raises:
        AutotuneError: The study is busy, cannot run here, or differs from the stored study of this name.
    """
    runs, external, patience_s = registry.runs(study.objective), requested.external, storage_patience_s()
    replay = runs == "recorded"
    if (runs == "told") is (external is None):
        raise StudyFileError(
            _EXTERNAL.format(name=study.name) if external is None else _NOT_EXTERNAL.format(study=study)
        )
    if requested.if_held is IfHeld.TAKE_OVER and runs == "launched" and not is_watched:
        _check_takes_over(study, requested)
    makes_files = only_ours(requested.runs, state_folder(requested.url)) if external is None else nullcontext()
    with makes_files, hold_study(requested, display, makes_runs=not replay) as (lock, place):
        settings = place.settings
        facts = session_facts(settings.machine, settings.launcher.flavour, settings.file, here=settings.queue is None)
        prepared = prepare(
            study, settings.machine, settings.launcher, settings.plan, facts.identity, settings.facts, place.claim
        )
        if not is_watched:
            if runs == "launched":
                replace_study_without_results(settings.url, settings.name, prepared.definition, display.line)
            check_continues(settings.url, settings.name, prepared.definition)
        display.line(REPLAY_NOTICE if replay else f"machine: {settings.machine}")
        _name_same_study(settings, prepared.definition, display)
        check(prepared)
        least = study.verdict.nodes
        place.nodes(prepared.plan, least).check([prepared.space.default()], least)
        _check_values(settings, prepared, display)
        _check_duet(study, settings, prepared)
        _check_meters(study, settings, prepared, display)
        place.claim()
        _clean_up_killed_sessions(settings)
        _show_notes(settings, prepared, display)
        size = prepared.space.size
        about = "" if size.exact else "about "
        display.line(f"space: {about}{size.value} valid configurations of {prepared.space.raw_size} combinations")
        if is_watched:
            store = StudyStore.read(settings.url, settings.name, read_only=False)
        else:
            store = StudyStore.create(settings.url, settings.name, prepared.definition)
        store.set_patience(Patience(patience_s, display.line))
        store.set_fence(lock.fence)
        if runs == "launched":
            store_kept_results(settings.runs, store, display.line)
        rereading = None if is_watched else reread(store, prepared)
        if rereading is not None:
            display.line(rereading.sentence())
        read_again = rereading is not None and not rereading.kept and not rereading.aside
        if external is not None:
            external.recall(store.runs(), standings_of(store, study.repeats.statistic))
        with store.memory_copy() if replay else nullcontext(store) as used:
            yield Opened(study, lock, place, used, prepared, facts, display, read_again)


def _check_takes_over(study: StudyFile, settings: SessionSettings) -> None:
    """Check that the study to take over is the one to continue, before its session is stopped.

    Raises:
        ChangedProgramError: Only the program or its files have changed since, so another study is continued.
    """

    def refuse() -> None:
        msg = "a dry run needs the cores of the study"
        raise CannotRunHereError(msg)

    machine, launcher = settings.machine, settings.launcher
    facts = session_facts(machine, launcher.flavour, settings.file, here=settings.queue is None)
    with temporary_folder("plan") as folder:
        try:
            prepared = prepare(study, machine, launcher, folder / "plan", facts.identity, settings.facts, refuse)
            if not _differences_from_replaceable(settings.url, settings.name, prepared.definition):
                check_continues(settings.url, settings.name, prepared.definition)
        except ChangedProgramError:
            raise
        except AutotuneError:
            return  # opening the study reports it, and knows its place


def _name_same_study(settings: SessionSettings, definition: Definition, display: Display) -> None:
    """Print a line if a new study could continue a stored one that has another name, as that of a copied file."""
    stored = find_stored_studies(settings.url)
    same = []
    for study in stored:
        with left_out_if_damaged(study.name):
            same += [] if study.definition.differences(definition) else [study.name]
    if same and settings.name not in {study.name for study in stored}:
        display.line(f"study {same[0]!r} here is about the same: --name {same[0]} continues it")


def replace_study_without_results(url: str, name: str, definition: Definition, say: Callable[[str], None]) -> None:
    """Remove the stored study of this name if it differs from `definition` and none of its runs worked.

    A user who fixes a command that failed can thus keep the name.
    """
    differences = _differences_from_replaceable(url, name, definition)
    if differences:
        StoredStudies(url).remove(name)
        what = ", ".join(difference.partition(":")[0] for difference in differences)
        say(f"study {name!r} starts over: it has changed ({what}), and none of its runs had worked")


def _differences_from_replaceable(url: str, name: str, definition: Definition) -> list[str]:
    """Return how the stored study differs from `definition`; empty if it must not be replaced."""
    try:
        stored = open_stored_study(url, name)
    except StorageError:
        return []  # no such study; opening an unreadable one raises the error
    differences = stored.definition.differences(definition)
    if not differences or any(run.outcome.failure is None for run in stored.runs()):
        return []
    if StudyStore.read(url, name).leases().all():
        return []  # jobs of it are in a queue
    return differences


def _clean_up_killed_sessions(settings: SessionSettings) -> None:
    """Remove what killed sessions left behind."""
    # Not before the cores are claimed: a study of the same name in another storage may hold them and have its runs
    # here.
    end_left_over(settings.runs)
    sweep_discarded(settings.runs)


def _show_notes(settings: SessionSettings, prepared: Prepared, display: Display) -> None:
    if note := other_folder_note():
        display.line(note)
    if prepared.plan.runs == "launched":
        for note in settings.launcher.notes(ranks=_has_ranks(prepared)):
            display.line(note)
    for note in (*prepared.plan.notes, *secret_notes(prepared.study)):
        display.line(note)


def _has_ranks(prepared: Prepared) -> bool:
    """Whether the runs are MPI programs."""
    job = _default_job(prepared)
    return any(part.mpi is not None for part in job.parts or (job,))


def _default_job(prepared: Prepared) -> Job:
    """Return the job of the default configuration; its folder no longer exists."""
    with temporary_folder("plan") as folder:
        return prepared.plan.objective.job(prepared.space.default(), Context(folder))


@contextmanager
def open_run_manager(opened: Opened) -> Iterator[RunManager]:
    """Provide the run manager of an open study, with the resources that it holds."""
    plan, settings, study, display = opened.prepared.plan, opened.settings, opened.study, opened.display
    place = opened.place
    if plan.recorded is not None:
        with simulated_runs(plan, study, display, settings.pause) as manager:
            yield manager
        return
    leases = place.leases(opened.store)
    with session_resources(place, leases, study.budget.workers) as resources, cleaner() as cleaning:
        budget, whole = study.budget, opened.prepared.whole
        factory = RunFactory(
            plan.objective,
            settings.runs,
            budget.run_time_limit_s,
            budget.infrastructure_retries,
            whole,
            plan.alike,
            _memory(opened),
            in_folders=place.in_folders,
        )
        gate = RunGate(
            resources.width,
            settings.deadline,
            settings.pause,
            jobs_stay=bool(place.scheduler),
            check_held=opened.lock.check,
            walltimes=WallTimes(None if settings.queue is None else settings.queue.site.walltime_s),
        )
        stored = opened.store.runs()
        registry = RunRegistry(resources.executor, leases, place.scheduler)
        flavour, session, mark = settings.launcher.flavour, opened.facts.to_dict(), opened.store.mark
        if place.in_folders:
            cleaning.catch_up(stored)
        registry.inherit(stored)
        manager = RunManager(
            resources.executor, resources.pool, factory, gate, registry, display, flavour, session, mark=mark
        )
        for run in stored:
            manager.learn(run.outcome, run.cores, run.series)
        manager.cleaner = cleaning if place.in_folders else None
        judge = Disturbances.of(study.noise, opened.store.definition.target, stored, display.line, expected_runs(study))
        manager.disturbances = judge
        manager.nodes = place.nodes(plan, study.verdict.nodes)
        manager.halves = _halves(settings, plan)
        manager.nodes.recall(stored)
        manager.quiet = place.quiet(study.noise, judge.mode)
        try:
            yield manager
        except StorageError:
            if place.in_folders:
                # No result is kept for runs of other programs: asking them for more would claim that their reports were
                # stored.
                manager.keep_ended()
            raise
        registry.end_left_over()


def _memory(opened: Opened) -> MemoryNeed | None:
    """Return the plan's memory need, extended by what other studies of the same workload have learnt."""
    need = opened.prepared.plan.memory
    if need is None:
        return None
    setting = setting_of(opened.store.name, opened.prepared.definition)
    known = of_program(measurements([opened.settings.url]), setting)
    return carry_over_excess(need, setting.workload, [one for one in known if one.setting.source != setting.source])


def _halves(settings: SessionSettings, plan: Plan) -> Halves:
    return halves_of(plan, settings.machine, settings.launcher, "ray" if settings.ray_address is not None else "here")


def _check_values(settings: SessionSettings, prepared: Prepared, display: Display) -> None:
    """Check that the programs and files exist that values of parameters name; of jobs, only warn.

    Raises:
        CannotRunHereError: This machine makes the runs and lacks one of them.
    """
    if settings.ray_address is not None:
        return
    as_jobs = settings.queue is not None
    missing = missing_values(prepared.plan, prepared.space, prepared.study.whole_steps, as_jobs=as_jobs)
    if missing and not as_jobs:
        msg = "values of parameters cannot work on this machine:"
        raise CannotRunHereError(msg, missing)
    for problem in missing:
        display.line(problem.message)


def _check_duet(study: StudyFile, settings: SessionSettings, prepared: Prepared) -> None:
    """Check that the verdict can be made in the mode that the study asks for.

    Raises:
        CannotRunHereError: The study asks for duets, and no two runs fit side by side.
    """
    halves = _halves(settings, prepared.plan)
    why = duet_obstacle(study, halves, lambda: _default_job(prepared).resources)
    if why:
        raise CannotRunHereError(duet_refusal(why))


def _check_meters(study: StudyFile, settings: SessionSettings, prepared: Prepared, display: Display) -> None:
    """Check that the meters that a study asks for exist, and warn about what spoils their figures.

    Raises:
        CannotRunHereError: This machine makes the runs and lacks a meter.
    """
    plan = prepared.plan
    if plan.metered and settings.ray_address is None:
        why = meter_obstacle(study, plan, settings.launcher, _default_job(prepared).resources.gpus)
        if why:
            raise CannotRunHereError(why)
    if doubt := shared_meter(study, plan, settings.launcher):
        display.line(doubt)
