"""One session of a study: from a study file to its summary, with everything that must be held meanwhile."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext

from autotune.comparison.ablation import Point, ablate
from autotune.comparison.findings import Ablation, standings_of
from autotune.comparison.sizing import SizingRequest, check_target_is_time
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
from autotune.performance.rightsizing.right_size import RightSize
from autotune.performance.warm_start import guide, warm_start
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
from autotune.tuning.again import begin_doubtful_anew
from autotune.tuning.done import is_done, is_judged, may_still_win
from autotune.tuning.hope import check_hope, check_worked
from autotune.tuning.judging import judge
from autotune.tuning.loop import Ending, TuningLoop
from autotune.tuning.opening import Opened, opened_study, runs_of
from autotune.tuning.retry import retry
from objectives.base import Context, Objective
from spaces import Configuration, Space


def run_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the winner; everything that ended is in storage whatever happens.

    Raises:
        AutotuneError: the study is busy, cannot run here, nothing worked, or its time is over before it is done.
    """
    check_sampler(study.sampler)
    with opened_study(study, settings, display) as opened:
        store, prepared = opened.store, opened.prepared
        is_launched = prepared.plan.runs == "launched"
        if is_launched:
            if opened.read_again:
                # What is no better than before would be no better if it ran again.
                check_hope(standings_of(store, study.repeats.statistic), study.budget.give_up_after, launched=True)
            retry(store, everything=settings.retry_failed)
        tune_again = settings.tune_again and is_launched
        if tune_again:
            begin_doubtful_anew(store, display.line)
        has_run = _until_done(opened)
        # The machine may have become another one once more, or new runs were disturbed. A second time is the last: a
        # machine that never stays as it is has no ranking.
        if tune_again and has_run and is_done(store, study, prepared) and begin_doubtful_anew(store, display.line):
            _until_done(opened)
        summary = summarise(store)
        check_worked(summary.standings)
        return summary


def _until_done(opened: Opened) -> bool:
    """Tune and judge what is left; return whether there was anything."""
    store, study, prepared, settings = opened.store, opened.study, opened.prepared, opened.settings
    if is_done(store, study, prepared):
        return False
    waiting = settings.external.waiting if settings.external is not None else lambda: 0
    sampler = sampler_of_study(prepared.space, study, waiting)
    _warm_up(opened, sampler)
    # Where others make the runs, nobody else needs the cores of this machine, and a crowd may ask.
    apart = plan_in_process(sampler) if settings.external is not None else nullcontext()
    with _says_what_remains(store, study), apart, runs_of(opened) as manager:
        _tune_and_judge(Asker(store, sampler), manager, study, prepared)
    return True


@contextmanager
def _says_what_remains(store: StudyStore, study: StudyFile) -> Iterator[None]:
    before = len(store.runs())
    try:
        yield
    except UnfinishedError as error:
        if len(store.runs()) == before:
            # The same command again, in an allocation as long, would never end.
            msg = f"{error}\nno run has ended in the time of this session: give it more, or a longer allocation"
            raise NoTimeError(msg) from error
        raise UnfinishedError(f"{error}\nevery finished run is stored: {_done(store, study)}") from error
    except PausedError as error:
        raise PausedError(f"{error}\n{_done(store, study)}") from error


def _done(store: StudyStore, study: StudyFile) -> str:
    finished = sum(trial.settled for trial in store.trials())
    wanted = "all" if finished >= study.budget.most else f"{finished} of at most {study.budget.most}"
    return f"{wanted} trials are finished" + (", their comparison is not" if wanted == "all" else "")


def _warm_up(opened: Opened, sampler: Proposer) -> None:
    """Let the search begin with what was predicted; a replay, whose times are simulated, has nothing to go by.

    What is known of a program's times says nothing of another target.
    """
    store, study, prepared, display = opened.store, opened.study, opened.prepared, opened.display
    is_other = prepared.definition.replay or study.target is not None
    if not study.sampler.warm_start or is_other or not study.has_one_winner:
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
    sampler.set_prior_mean(told, leads=start.followed)
    if start.followed:
        sampler.set_held_cores(cores)
    else:
        sampler.start_with(start.proposals)


def _held_cores(prepared: Prepared) -> HeldCores | None:
    with temporary_folder("plan") as folder:
        context = Context(folder)
        return HeldCores.infer(
            prepared.space, lambda configuration: prepared.plan.objective.job(configuration, context).resources.cores
        )


def confirm_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Compare the best trials of a study with its baseline, or go on comparing them.

    Raises:
        AutotuneError: the study is busy or cannot run here, or is a trade-off without weights.
    """
    _check_weights(study, "compared")
    with opened_study(study, settings, display) as opened:
        if study.decisions is not None or not is_judged(summarise(opened.store), study, opened.prepared):
            with runs_of(opened) as manager:
                judge(opened.store, manager, study, opened.prepared)
        return summarise(opened.store)


def watch_study(study: StudyFile, settings: SessionSettings, display: Display, pairs: int | None) -> Finding:
    """Compare the winner of a study with its default in a few fresh pairs, and say what all such checks show.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no winner.
    """
    _check_winner(study)

    def check(prepared: Prepared) -> None:
        watch = Watch.of(StudyStore.read(settings.url, settings.name), study.repeats.statistic)
        winner = watch.standings.trials[watch.verdict.winner]
        if broken := prepared.space.violations(winner.configuration):
            msg = f"the winner (trial {winner.number}) is not valid here any more: {'; '.join(map(str, broken))}"
            raise CannotRunHereError(msg)

    with opened_study(study, settings, display, check, is_watched=True) as opened, runs_of(opened) as manager:
        watch = Watch.of(opened.store, study.repeats.statistic)
        # A check is told apart from the verdict by what it ran with.
        manager.session = {**manager.session, **differences(opened.store.definition, opened.prepared.definition)}
        watch.check(opened.store, manager, study, pairs or watch.pairs)
        return watch.finding()


def ablate_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> Ablation | None:
    """Take the winner of a study apart, or the point that weights choose; None if that is no better than the default.

    Raises:
        AutotuneError: the study is busy or cannot run here, is a trade-off without weights, or a decision table.
    """
    if study.tradeoff is None:
        _check_winner(study)
    _check_weights(study, "taken apart")
    with opened_study(study, settings, display) as opened:
        point = _preferred(opened.store)
        if study.tradeoff is not None and point is None:
            return None
        with runs_of(opened) as manager:
            return ablate(opened.store, manager, opened.prepared.space, study, rounds, point)


def _preferred(store: StudyStore) -> Point | None:
    summary = summarise(store)
    if summary.preference is None or summary.front is None:
        return None
    return Point(summary.preference.point.trial, summary.front.metrics)


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
        Variants.of(prepared.space, request, prepared.space.default(), study.scaling)

    with opened_study(study, settings, display, check) as opened:
        store, space = opened.store, opened.prepared.space
        variants = Variants.of(space, request, at(summarise(store), space), study.scaling)
        with runs_of(opened) as manager:
            return sweep(store, manager, study, request=request, variants=variants, live=live)


def rightsize_study(
    study: StudyFile, settings: SessionSettings, display: Display, request: SizingRequest
) -> tuple[RightSize, Objective]:
    """Make a few runs of different sizes; return the right one under the `request`'s limits, and what makes its job.

    Raises:
        AutotuneError: the study is busy or cannot run here, or what it measures is no time.
    """
    with opened_study(
        study, settings, display, lambda prepared: check_target_is_time(prepared.definition.target)
    ) as opened:
        prepared, place = opened.prepared, opened.settings
        facts, folder = place.machine.facts, place.plan / "sizes"
        sizing = request.sizing(opened.store, prepared.plan, prepared.space, facts, folder)
        if len(sizing.probes()) < request.runs and sizing.knowledge().next() is not None:
            with runs_of(opened) as manager:
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


def _check_weights(study: StudyFile, what: str) -> None:
    if study.tradeoff is not None and not study.tradeoff.weights:
        msg = f"study {study.name!r} looks for a trade-off: --weights say which point of its front is {what}"
        raise StudyFileError(msg)


def _check_winner(study: StudyFile) -> None:
    if not study.has_one_winner:
        looks, prints = ("decision table", "prints it") if study.decisions else ("trade-off", "lists the front")
        msg = f"study {study.name!r} looks for a {looks}: it has no single winner; `autotune best` {prints}"
        raise StudyFileError(msg)


def _tune_and_judge(asker: Asker, manager: RunManager, study: StudyFile, prepared: Prepared) -> None:
    """Tune, and judge the best; again while fresh runs showed that what others were stopped for breaks a limit."""
    store, before = asker.store, -1
    while len(store.runs()) > before:
        before = len(store.runs())
        ending = _tune(asker, manager, study)
        judge(store, manager, study, prepared)
        if ending is Ending.TIMEOUT or not may_still_win(summarise(store), study):
            return


def _tune(asker: Asker, manager: RunManager, study: StudyFile) -> Ending:
    runner = TuningLoop(asker, manager, study)
    ending = runner.tune()
    manager.display.line(f"tuning ended: {ending.value}")
    if ending is not Ending.PAYS_NO_MORE:
        # Useful to a user who thinks of more trials.
        runner.look_ahead()
    return ending
