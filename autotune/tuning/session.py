"""One session of a study: from a study file to its summary, with everything that must be held meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from autotune.comparison.ablation import ablate
from autotune.comparison.confirm import confirm
from autotune.comparison.findings import Ablation
from autotune.comparison.other_workloads import compare_on_workloads
from autotune.comparison.scaling import ScalingPoint, scale
from autotune.comparison.sizing import SizingRequest, check_is_sized
from autotune.comparison.sweep import Request, Sweep, Variants, sweep
from autotune.coordination.cleaner import cleaner
from autotune.coordination.resources import coordinators_of, held, session_resources
from autotune.coordination.run_factory import RunFactory
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.coordination.run_registry import RunRegistry
from autotune.coordination.session_settings import SessionSettings, storage_patience_s
from autotune.display.console import Display
from autotune.errors import CannotRunHereError, PausedError, StorageError, StudyFileError, UnfinishedError
from autotune.lockfile import temporary_folder
from autotune.machines.provenance import SessionFacts, session_facts
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.rightsizing.right_size import RightSize
from autotune.performance.warm_start import guide, warm_start
from autotune.planning.prepare import Prepared, prepare
from autotune.records.study import REPLAY_NOTICE
from autotune.results.summary import Summary, summarise
from autotune.search.asker import Asker
from autotune.search.base import Proposer
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.registry import check_sampler, sampler_of
from autotune.statistics.standings import Standings
from autotune.storage.connection import Patience
from autotune.storage.stored_study import check_continues
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile, parse
from autotune.tuning.anew import begin_anew
from autotune.tuning.done import is_done, is_judged
from autotune.tuning.hope import check_hope, check_worked
from autotune.tuning.loop import Ending, TuningLoop
from autotune.tuning.rereading import reread
from autotune.tuning.retry import retry
from autotune.tuning.simulated import simulated_runs
from launchers.local import sweep as end_left_over
from objectives import registry
from objectives.base import Context, Objective
from spaces import Configuration, Space


@dataclass(frozen=True)
class _Opened:
    """A study that is held, and made ready for the place where it runs."""

    study: StudyFile
    settings: SessionSettings
    store: StudyStore
    prepared: Prepared
    facts: SessionFacts
    display: Display
    read_again: bool = False


_EXTERNAL = (
    "the runs of study {name!r} (objective = 'external') are made by another program, which asks for configurations: "
    "use `autotune serve`, or autotune.asktell.AskTell in Python"
)
_NOT_EXTERNAL = (
    "study {study.name!r} (objective = {study.objective!r}) makes its runs itself: use `autotune study`; "
    "to ask and tell, its objective must be 'external'"
)
# The part that one of several coordinators plays.
_JUDGE = "verdict"


def run_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the winner; everything that ended is in storage whatever happens.

    Raises:
        AutotuneError: the study is busy, cannot run here, nothing worked, or its time is over before it is done.
    """
    check_sampler(study.sampler)
    with _opened(study, settings, display) as opened:
        store, prepared = opened.store, opened.prepared
        waiting = settings.external.waiting if settings.external is not None else lambda: 0
        sampler = sampler_of(prepared.space, study.sampler, waiting)
        if prepared.plan.runs == "launched":
            if opened.read_again:
                # What is no better than before would be no better if it ran again.
                check_hope(_standings(store, study), study.budget.give_up_after, launched=True)
            retry(store, everything=settings.retry_failed)
        if not is_done(store, study, prepared):
            _warm_up(opened, sampler)
            with _says_what_remains(store, study), _runs(opened) as manager:
                _tune(Asker(store, sampler), manager, study)
                _judge(store, manager, study, prepared)
        summary = summarise(store)
        check_worked(summary.standings)
        return summary


@contextmanager
def _says_what_remains(store: StudyStore, study: StudyFile) -> Iterator[None]:
    before = len(store.runs())
    try:
        yield
    except UnfinishedError as error:
        if len(store.runs()) == before:
            # The same command again, in an allocation as long, would never end.
            msg = f"{error}\nno run has ended in the time of this session: give it more, or a longer allocation"
            raise CannotRunHereError(msg) from error
        raise UnfinishedError(f"{error}\nevery finished run is stored: {_done(store, study)}") from error
    except PausedError as error:
        raise PausedError(f"{error}\n{_done(store, study)}") from error


def _done(store: StudyStore, study: StudyFile) -> str:
    finished = sum(trial.settled for trial in store.trials())
    wanted = "all" if finished >= study.budget.most else f"{finished} of at most {study.budget.most}"
    return f"{wanted} trials are finished" + (", their comparison is not" if wanted == "all" else "")


def _standings(store: StudyStore, study: StudyFile) -> Standings:
    return Standings.of(store.trials(), store.definition.target, study.repeats.statistic)


def _slowest_s(store: StudyStore) -> float | None:
    return max((run.outcome.usage.elapsed_s for run in store.runs() if run.outcome.complete), default=None)


def _warm_up(opened: _Opened, sampler: Proposer) -> None:
    """Let the search begin with what was predicted; a replay, whose times are simulated, has nothing to go by."""
    store, study, prepared, display = opened.store, opened.study, opened.prepared, opened.display
    if not study.sampler.warm_start or prepared.definition.replay or study.tradeoff is not None:
        return
    setting = setting_of(store.name, prepared.definition)
    try:
        stored = measurements([opened.settings.url], setting.program)
    except StorageError as error:
        display.line(f"no warm start: {error}")
        return
    known = [measurement for measurement in stored if measurement.setting.source != setting.source]
    space, shape = prepared.space, prepared.plan.shape
    try:
        told = guide(space, setting, known, shape)
        start = warm_start(store, space, setting, known, display, shape, told)
        cores = _held_cores(prepared) if start.followed else None
    except Exception as error:  # noqa: BLE001  whatever a model stumbles over, a study can do without it
        display.line(f"no warm start: the model failed: {' '.join(str(error).split()) or type(error).__name__}")
        return
    sampler.guide_by(told, leads=start.followed)
    if start.followed:
        sampler.weigh_by(cores)
    else:
        sampler.start_with(start.proposals)


def _held_cores(prepared: Prepared) -> HeldCores | None:
    with temporary_folder("plan") as folder:
        context = Context(folder)
        return HeldCores.found(
            prepared.space, lambda configuration: prepared.plan.objective.job(configuration, context).resources.cores
        )


def confirm_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Compare the best trials of a study with its baseline, or go on comparing them.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with _opened(study, settings, display) as opened:
        if not is_judged(summarise(opened.store), study, opened.prepared):
            with _runs(opened) as manager:
                _judge(opened.store, manager, study, opened.prepared)
        return summarise(opened.store)


def ablate_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> Ablation | None:
    """Take the winner of a study apart; None if nothing beat the default.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with _opened(study, settings, display) as opened, _runs(opened) as manager:
        return ablate(opened.store, manager, opened.prepared.space, study, rounds)


def scale_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> list[ScalingPoint]:
    """Run the configuration to use with one process, two, and so on.

    Raises:
        AutotuneError: the study is busy, cannot run here, or does not say what counts processes.
    """
    with _opened(study, settings, display) as opened, _runs(opened) as manager:
        base = summarise(opened.store).configuration
        return scale(opened.store, manager, opened.prepared.space, study, base=base, rounds=rounds)


def sweep_study(  # noqa: PLR0913, PLR0917  what it is about, where, and how it is shown
    study: StudyFile,
    settings: SessionSettings,
    display: Display,
    request: Request,
    at: Callable[[Summary, Space], Configuration],
    live: Callable[[Sweep], str],
) -> Sweep:
    """Run the configuration that `at` says with other values of one or two parameters; `live` draws how far it is.

    Raises:
        AutotuneError: the study is busy or cannot run here, or the space has no such parameters or values.
    """

    def check(prepared: Prepared) -> None:
        # A mistyped name neither waits for cores nor leaves a study behind.
        Variants.of(prepared.space, request, prepared.space.default())

    with _opened(study, settings, display, check) as opened:
        store, space = opened.store, opened.prepared.space
        variants = Variants.of(space, request, at(summarise(store), space))
        with _runs(opened) as manager:
            return sweep(store, manager, study, request=request, variants=variants, live=live)


def rightsize_study(
    study: StudyFile, settings: SessionSettings, display: Display, request: SizingRequest
) -> tuple[RightSize, Objective]:
    """Make a few runs of different sizes; return the right one under the `request`'s limits, and what makes its job.

    Raises:
        AutotuneError: the study is busy or cannot run here, or what it measures is no time.
    """
    with _opened(study, settings, display, lambda prepared: check_is_sized(prepared.definition.target)) as opened:
        prepared, place = opened.prepared, opened.settings
        facts, folder = place.machine.facts, place.plan / "sizes"
        sizing = request.sizing(opened.store, prepared.plan, prepared.space, facts, folder)
        if len(sizing.probes()) < request.runs and sizing.known().next() is not None:
            with _runs(opened) as manager:
                sizing.probe(manager, study, request.runs)
        return sizing.right_size(), prepared.plan.objective


def stored_study(url: str, name: str) -> StudyFile:
    """Return the study file that a study in storage was made from.

    Raises:
        StorageError: there is no such study.
    """
    stored = StudyStore.read(url, name).definition.study
    if not stored:
        msg = f"study {name!r} does not hold its study file; use `autotune study`"
        raise StorageError(msg)
    return parse(stored, source=f"the stored study {name}")


@contextmanager
def _opened(
    study: StudyFile,
    requested: SessionSettings,
    display: Display,
    check: Callable[[Prepared], None] = lambda _: None,
) -> Iterator[_Opened]:
    runs, external, patience_s = registry.runs(study.objective), requested.external, storage_patience_s()
    replay = runs == "recorded"
    if (runs == "told") is (external is None):
        raise StudyFileError(
            _EXTERNAL.format(name=study.name) if external is None else _NOT_EXTERNAL.format(study=study)
        )
    with held(requested, display, claim=not replay) as (settings, cores):
        display.line(REPLAY_NOTICE if replay else f"machine: {settings.machine}")
        facts = session_facts(settings.machine, settings.launcher.flavour, settings.file, here=settings.queue is None)
        prepared = prepare(
            study, settings.machine, settings.launcher, settings.plan, facts.identity, settings.facts, cores.claim
        )
        if runs == "launched":
            begin_anew(settings.url, settings.name, prepared.definition, display.line)
        check_continues(settings.url, settings.name, prepared.definition)
        check(prepared)
        cores.claim()
        if not settings.shared:
            # Only now: a study of the same name in another storage, which has the cores, may have its runs there.
            end_left_over(settings.runs)
        if prepared.plan.runs == "launched":
            for note in settings.launcher.notes(ranks=_has_ranks(prepared)):
                display.line(note)
        for note in prepared.plan.notes:
            display.line(note)
        size = prepared.space.size
        about = "" if size.exact else "about "
        display.line(f"space: {about}{size.value} valid configurations of {prepared.space.raw_size} combinations")
        store = StudyStore.create(settings.url, settings.name, prepared.definition)
        store.wait_with(Patience(patience_s, display.line))
        rereading = reread(store, prepared)
        if rereading is not None:
            display.line(rereading.sentence())
        read_again = rereading is not None and not rereading.kept and not rereading.aside
        if external is not None:
            external.recall(store.runs(), _standings(store, study))
        with store.mirrored() if replay else nullcontext(store) as used:
            yield _Opened(study, settings, used, prepared, facts, display, read_again)


def _has_ranks(prepared: Prepared) -> bool:
    """Whether runs are programs of MPI."""
    with temporary_folder("plan") as folder:
        job = prepared.plan.objective.job(prepared.space.default(), Context(folder))
        return any(part.mpi is not None for part in job.parts or (job,))


@contextmanager
def _runs(opened: _Opened) -> Iterator[RunManager]:
    plan, settings, study, display = opened.prepared.plan, opened.settings, opened.study, opened.display
    if plan.recorded is not None:
        with simulated_runs(plan.objective, plan.recorded, study, display, settings.pause) as manager:
            yield manager
        return
    with (
        coordinators_of(settings, opened.store) as coordinators,
        session_resources(settings, coordinators, display, study.budget.workers) as resources,
        cleaner() as cleaning,
    ):
        folder = settings.runs / coordinators.folder if coordinators is not None and settings.shared else settings.runs
        budget, whole = study.budget, opened.prepared.whole
        factory = RunFactory(
            plan.objective, folder, budget.run_time_limit_s, budget.infrastructure_retries, whole, plan.alike
        )
        gate = RunGate(
            resources.width, settings.deadline, settings.pause, _slowest_s(opened.store), settings.queue is not None
        )
        scheduler = settings.queue.site.scheduler if settings.queue is not None else ""
        registry = RunRegistry(resources.executor, coordinators, scheduler, opened.store.count_runs)
        flavour, session = settings.launcher.flavour, opened.facts.to_dict()
        stored = opened.store.runs()
        cleaning.catch_up(stored)
        registry.inherit(stored)
        yield RunManager(
            resources.executor, resources.pool, factory, gate, registry, display, flavour, session, cleaning
        )
        registry.end_left_over()


def _check_winner(study: StudyFile) -> None:
    if study.tradeoff is not None:
        msg = f"study {study.name!r} looks for a trade-off: it has no single winner; `autotune best` lists the front"
        raise StudyFileError(msg)


def _tune(asker: Asker, manager: RunManager, study: StudyFile) -> None:
    runner = TuningLoop(asker, manager, study)
    ending = runner.tune()
    manager.display.line(f"tuning ended: {ending.value}")
    if ending is not Ending.PAYS_NO_MORE:
        # Useful to a user who thinks of more trials.
        runner.look_ahead()


def _judge(store: StudyStore, manager: RunManager, study: StudyFile, prepared: Prepared) -> None:
    if study.tradeoff is not None:
        return
    other = manager.registry.coordinators.play(_JUDGE) if manager.registry.coordinators is not None else None
    if other is not None:
        manager.display.line(f"the best are compared with the default by {other}: `autotune show` says what it finds")
        return
    confirm(store, manager, study)
    compare_on_workloads(store, manager, study, prepared.workloads)
    if manager.registry.coordinators is not None:
        manager.registry.coordinators.rest(_JUDGE)
