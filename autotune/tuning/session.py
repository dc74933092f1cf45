"""The sessions of a study: tune, confirm, watch, ablate, sweep."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from autotune.comparison.ablation import Point, ablate
from autotune.comparison.findings import Ablation, standings_of
from autotune.comparison.sweep import Request, Sweep, Variants, sweep
from autotune.comparison.watching.check import differences
from autotune.comparison.watching.finding import Finding
from autotune.comparison.watching.watch import Watch
from autotune.coordination.run_manager import RunManager
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Display
from autotune.errors import (
    CannotRunHereError,
    NoTimeError,
    PausedError,
    StorageError,
    StudyFileError,
    UnfinishedError,
)
from autotune.held_folders import temporary_folder
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.recognition import of_program
from autotune.performance.warm_start import find_earlier_study, guide, warm_start
from autotune.planning.prepare import Prepared
from autotune.results.summary import Summary, summarise
from autotune.search.asker import Asker
from autotune.search.base import Proposer
from autotune.search.decisions.registry import sampler_of_study
from autotune.search.guidance.held_cores import HeldCores
from autotune.search.plan_process import plan_in_process
from autotune.search.registry import check_sampler
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile, parse
from autotune.tuning.give_up import check_anything_worked, check_give_up
from autotune.tuning.goal import goal_of, is_done
from autotune.tuning.loop import Ending, TuningLoop
from autotune.tuning.opening import Opened, open_run_manager, open_study
from autotune.tuning.retry import retry_failed
from autotune.tuning.unreliable_runs import set_unreliable_aside
from objectives.base import Context
from spaces import Configuration, Space


def run_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the result; every run that ended is stored, whatever happens.

    Raises:
        AutotuneError: The study is busy, cannot run here, nothing worked, or the time ended too early.
    """
    check_sampler(study.sampler)
    with open_study(study, settings, display) as opened:
        store, prepared = opened.store, opened.prepared
        is_launched = prepared.plan.runs == "launched"
        if is_launched:
            if opened.read_again:
                # If the new reading is no better, running the trials again would fail the same way.
                check_give_up(standings_of(store, study.repeats.statistic), study.budget.give_up_after, launched=True)
            retry_failed(store, everything=settings.retry_failed)
        tune_again = settings.tune_again and is_launched
        if tune_again:
            set_unreliable_aside(store, display.line)
        has_run = _run_until_done(opened)
        # New runs may be disturbed, and the machine's pace may change again. There is no third time: trials cannot be
        # ranked on a machine whose pace never settles.
        if tune_again and has_run and is_done(store, study, prepared) and set_unreliable_aside(store, display.line):
            _run_until_done(opened)
        summary = summarise(store)
        check_anything_worked(summary.standings)
        return summary


def _run_until_done(opened: Opened) -> bool:
    """Tune and confirm what is left; return whether anything was left."""
    store, study, prepared, settings = opened.store, opened.study, opened.prepared, opened.settings
    if is_done(store, study, prepared):
        return False
    waiting = settings.external.waiting if settings.external is not None else lambda: 0
    sampler = sampler_of_study(prepared.space, study, waiting)
    _warm_start(opened, sampler)
    # If other programs make the runs, this machine's cores are free for a model process, and many programs may ask at
    # once.
    apart = plan_in_process(sampler) if settings.external is not None else nullcontext()
    with _explain_unfinished(store, study), apart, open_run_manager(opened) as manager:
        _tune_and_confirm(Asker(store, sampler), manager, study, prepared)
    return True


@contextmanager
def _explain_unfinished(store: StudyStore, study: StudyFile) -> Iterator[None]:
    before = len(store.runs())
    try:
        yield
    except UnfinishedError as error:
        if len(store.runs()) == before:
            # Repeating the command in an allocation of the same length would never finish.
            msg = f"{error}\nno run has ended in the time of this session: give it more, or a longer allocation"
            raise NoTimeError(msg) from error
        raise UnfinishedError(f"{error}\nevery finished run is stored: {_progress(store, study)}") from error
    except PausedError as error:
        raise PausedError(f"{error}\n{_progress(store, study)}") from error


def _progress(store: StudyStore, study: StudyFile) -> str:
    finished = sum(trial.settled for trial in store.trials())
    wanted = "all" if finished >= study.budget.most else f"{finished} of at most {study.budget.most}"
    return f"{wanted} trials are finished" + (", their comparison is not" if wanted == "all" else "")


def _warm_start(opened: Opened, sampler: Proposer) -> None:
    """Start the search from predicted configurations, unless the times are simulated or the target is not a time.

    Known run times of a program predict nothing about another target.
    """
    store, study, prepared, display = opened.store, opened.study, opened.prepared, opened.display
    is_other = prepared.definition.replay or study.target is not None
    if not study.sampler.warm_start or is_other or not study.has_one_winner:
        return
    setting = setting_of(store.name, prepared.definition)
    try:
        stored = of_program(measurements([opened.settings.url]), setting)
    except StorageError as error:
        display.line(f"no warm start: {error}")
        return
    known = [measurement for measurement in stored if measurement.setting.source != setting.source]
    space, shape = prepared.space, prepared.plan.shape
    try:
        earlier = find_earlier_study(store, space, setting, known)
        fields = guide(space, setting, known, shape) if earlier is None else None
        start = warm_start(store, space, setting, known, display, shape, fields, earlier)
        cores = _cores_to_hold(prepared) if start.followed else None
    except ModuleNotFoundError as error:
        display.line(f"no warm start: a prediction needs {error.name}, which is not installed")
        return
    except Exception as error:  # noqa: BLE001  a study works without its model, whatever fails there
        display.line(f"no warm start: the model failed: {' '.join(str(error).split()) or type(error).__name__}")
        return
    if earlier is not None:
        sampler.set_earlier_values(earlier.values)
    sampler.set_prior_mean(fields, leads=start.followed)
    if start.followed:
        sampler.set_held_cores(cores)
    else:
        sampler.start_with(start.proposals)


def _cores_to_hold(prepared: Prepared) -> HeldCores | None:
    with temporary_folder("plan") as folder:
        context = Context(folder)
        return HeldCores.infer(
            prepared.space, lambda configuration: prepared.plan.objective.job(configuration, context).resources.cores
        )


def confirm_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Compare the best trials of a study with its baseline, or resume that comparison.

    Raises:
        AutotuneError: The study is busy or cannot run here, or is a trade-off without weights.
    """
    _check_weights(study, "compared")
    with open_study(study, settings, display) as opened:
        goal = goal_of(study, opened.prepared)
        if not goal.is_confirmed(opened.store, summarise(opened.store)):
            with open_run_manager(opened) as manager:
                goal.confirm(opened.store, manager)
        return summarise(opened.store)


def watch_study(study: StudyFile, settings: SessionSettings, display: Display, pairs: int | None) -> Finding:
    """Compare the winner of a study with its default in a few fresh pairs, and return what all checks show.

    Raises:
        AutotuneError: The study is busy or cannot run here, or has no winner.
    """
    _check_winner(study)

    def check(prepared: Prepared) -> None:
        watch = Watch.of(StudyStore.read(settings.url, settings.name), study.repeats.statistic)
        winner = watch.standings.trials[watch.verdict.winner]
        if broken := prepared.space.violations(winner.configuration):
            msg = f"the winner (trial {winner.number}) is no longer valid here: {'; '.join(map(str, broken))}"
            raise CannotRunHereError(msg)

    with open_study(study, settings, display, check, is_watched=True) as opened, open_run_manager(opened) as manager:
        watch = Watch.of(opened.store, study.repeats.statistic)
        # Store with the runs of a check how its software and machine differ from those of the verdict.
        manager.session = {**manager.session, **differences(opened.store.definition, opened.prepared.definition)}
        watch.check(opened.store, manager, study, pairs or watch.pairs)
        return watch.finding()


def ablate_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> Ablation | None:
    """Measure what each option of the winner, or of the weighted point of a front, is worth.

    Return None if it is no better than the default.

    Raises:
        AutotuneError: The study is busy or cannot run here, is a trade-off without weights, or a decision table.
    """
    if study.tradeoff is None:
        _check_winner(study)
    _check_weights(study, "taken apart")
    with open_study(study, settings, display) as opened:
        point = _point_of_preference(opened.store)
        if study.tradeoff is not None and point is None:
            return None
        with open_run_manager(opened) as manager:
            return ablate(opened.store, manager, opened.prepared.space, study, rounds, point)


def _point_of_preference(store: StudyStore) -> Point | None:
    summary = summarise(store)
    if summary.preference is None or summary.front is None:
        return None
    return Point(summary.preference.point.trial, summary.front.metrics)


def sweep_study(  # noqa: PLR0913, PLR0917  the study, the sweep, and how both are shown
    study: StudyFile,
    settings: SessionSettings,
    display: Display,
    request: Request,
    at: Callable[[Summary, Space], Configuration],
    live: Callable[[Sweep], str],
) -> Sweep:
    """Run a configuration with other values of one or two parameters.

    Args:
        study: The study file.
        settings: The settings of the session.
        display: Shows what happens.
        request: The parameters and values of the sweep.
        at: Returns the configuration to vary.
        live: Draws the progress.

    Raises:
        AutotuneError: The study is busy or cannot run here, or the space lacks a parameter or value.
    """

    def check(prepared: Prepared) -> None:
        # A mistyped name must fail before the session waits for cores or creates a study.
        Variants.of(prepared.space, request, prepared.space.default(), study.scaling)

    with open_study(study, settings, display, check) as opened:
        store, space = opened.store, opened.prepared.space
        variants = Variants.of(space, request, at(summarise(store), space), study.scaling)
        with open_run_manager(opened) as manager:
            return sweep(store, manager, study, request=request, variants=variants, live=live)


def study_file_of(url: str, name: str) -> StudyFile:
    """Return the study file that a stored study was made from.

    Raises:
        StorageError: There is no such study.
    """
    stored = StudyStore.read(url, name).definition.study
    if not stored:
        msg = f"study {name!r} does not hold its study file; use `autotune study`"
        raise StorageError(msg)
    return parse(stored, source=f"the stored study {name}")


def _check_weights(study: StudyFile, what: str) -> None:
    if study.tradeoff is not None and not study.tradeoff.weights:
        msg = f"study {study.name!r} looks for a trade-off: --weights say which point of its front is {what}"
        raise StudyFileError(msg)


def _check_winner(study: StudyFile) -> None:
    if not study.has_one_winner:
        msg = f"study {study.name!r} looks for a {study.looks_for}: it has no single winner; `autotune best` prints it"
        raise StudyFileError(msg)


def _tune_and_confirm(asker: Asker, manager: RunManager, study: StudyFile, prepared: Prepared) -> None:
    """Tune and confirm; repeat while fresh runs show that a trial was stopped for one that breaks a limit."""
    store, goal, before = asker.store, goal_of(study, prepared), -1
    while len(store.runs()) > before:
        before = len(store.runs())
        ending = _tune(asker, manager, study)
        goal.confirm(store, manager)
        if ending is Ending.TIMEOUT or not goal.needs_tuning(summarise(store)):
            return


def _tune(asker: Asker, manager: RunManager, study: StudyFile) -> Ending:
    runner = TuningLoop(asker, manager, study)
    ending = runner.tune()
    manager.display.line(f"tuning ended: {ending.value}")
    if ending is not Ending.PAYS_NO_MORE:
        # A user may want to know whether more trials would pay.
        runner.look_ahead()
    return ending
