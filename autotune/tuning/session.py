"""One session of a study: from a study file to its summary, with everything that must be held meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from autotune.comparison.ablation import Ablation, ablate
from autotune.comparison.blocks import FAILED_OFTEN
from autotune.comparison.confirm import confirm, pairs_wanted
from autotune.comparison.other_workloads import compare_on_workloads
from autotune.comparison.scaling import ScalingPoint, scale
from autotune.coordination.resources import coordinators_of, held, session_resources
from autotune.coordination.run_manager import Bench
from autotune.coordination.session_settings import SessionSettings
from autotune.display.console import Display
from autotune.errors import CannotRunHereError, PausedError, StorageError, StudyFileError, UnfinishedError
from autotune.execution.segments import Segment
from autotune.execution.simulated_executor import simulated_bench
from autotune.machines.provenance import SessionFacts, session_facts
from autotune.performance.measurements.dataset import measurements, setting_of
from autotune.performance.warm_start import guide, warm_start
from autotune.planning.prepare import Prepared, prepare
from autotune.records.study import REPLAY_NOTICE
from autotune.results.summary import Summary, summarise
from autotune.search.asker import Asker
from autotune.search.base import Proposer
from autotune.search.registry import check_sampler, sampler_of
from autotune.statistics.standings import Standings
from autotune.statistics.verdict import Verdict
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile, parse
from autotune.tuning.tuner import Ending, TuningLoop
from launchers.local import sweep
from objectives import registry
from objectives.base import Metric


@dataclass(frozen=True)
class _Opened:
    """A study that is held, and made ready for the place where it runs."""

    study: StudyFile
    settings: SessionSettings
    store: StudyStore
    prepared: Prepared
    facts: SessionFacts
    display: Display


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
        sampler = sampler_of(prepared.space, study.sampler)
        if settings.desk is not None:
            sampler.waiting = settings.desk.waiting
        if not _is_done(store, study, prepared):
            _warm_up(opened, sampler)
            with _says_what_remains(store, study), _bench(opened) as bench:
                _tune(Asker(store, sampler), bench, study)
                _judge(store, bench, study, prepared)
        return summarise(store)


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


def _slowest_s(store: StudyStore) -> float | None:
    return max((run.outcome.usage.elapsed_s for run in store.runs() if run.outcome.complete), default=None)


def _warm_up(opened: _Opened, sampler: Proposer) -> None:
    """Let the search begin with what was predicted; a replay, whose times are simulated, has nothing to go by."""
    store, study, prepared, display = opened.store, opened.study, opened.prepared, opened.display
    if not study.sampler.warm_start or prepared.definition.replay or study.tradeoff is not None:
        return
    setting = setting_of(store.name, prepared.definition)
    try:
        told = measurements([opened.settings.url], setting.program)
    except StorageError as error:
        display.line(f"no warm start: {error}")
        return
    known = [one for one in told if one.setting.source != setting.source]
    try:
        found = warm_start(store, prepared.space, setting, known, display)
    except Exception as error:  # noqa: BLE001  whatever a model stumbles over, a study can do without it
        display.line(f"no warm start: the model failed: {' '.join(str(error).split()) or type(error).__name__}")
        return
    sampler.start_with(found.proposals)
    sampler.guide_by(guide(prepared.space, setting, known))


def confirm_study(study: StudyFile, settings: SessionSettings, display: Display) -> Summary:
    """Compare the best trials of a study with its baseline, or go on comparing them.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with _opened(study, settings, display) as opened:
        if not _is_judged(summarise(opened.store), study, opened.prepared):
            with _bench(opened) as bench:
                _judge(opened.store, bench, study, opened.prepared)
        return summarise(opened.store)


def ablate_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> Ablation | None:
    """Take the winner of a study apart; None if nothing beat the default.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with _opened(study, settings, display) as opened, _bench(opened) as bench:
        return ablate(opened.store, bench, opened.prepared.space, study, rounds)


def scale_study(study: StudyFile, settings: SessionSettings, display: Display, rounds: int) -> list[ScalingPoint]:
    """Run the configuration to use with one process, two, and so on.

    Raises:
        AutotuneError: the study is busy, cannot run here, or does not say what counts processes.
    """
    with _opened(study, settings, display) as opened, _bench(opened) as bench:
        base = summarise(opened.store).configuration
        return scale(opened.store, bench, opened.prepared.space, study, base, rounds)


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
def _opened(study: StudyFile, asked: SessionSettings, display: Display) -> Iterator[_Opened]:
    runs, desk = registry.runs(study.objective), asked.desk
    replay = runs == "recorded"
    if (runs == "told") is (desk is None):
        raise StudyFileError(_EXTERNAL.format(name=study.name) if desk is None else _NOT_EXTERNAL.format(study=study))
    with held(asked, display, claim=not replay) as settings:
        if not settings.shared:
            sweep(settings.runs)
        display.line(REPLAY_NOTICE if replay else f"machine: {settings.machine}")
        facts = session_facts(settings.machine, settings.launcher.flavour, settings.file, here=settings.queue is None)
        prepared = prepare(study, settings.machine, settings.launcher, settings.plan, facts.identity, settings.facts)
        for note in (*(() if replay or desk is not None else settings.launcher.notes()), *prepared.plan.notes):
            display.line(note)
        size = prepared.space.size
        about = "" if size.exact else "about "
        display.line(f"space: {about}{size.value} valid configurations of {prepared.space.raw_size} combinations")
        store = StudyStore.create(settings.url, settings.name, prepared.definition)
        if desk is not None:
            standings = Standings.of(store.trials(), prepared.definition.target, study.repeats.statistic)
            desk.recall(store.runs(), standings)
        with store.mirrored() if replay else nullcontext(store) as used:
            yield _Opened(study, settings, used, prepared, facts, display)


@contextmanager
def _bench(opened: _Opened) -> Iterator[Bench]:
    plan, settings, study, display = opened.prepared.plan, opened.settings, opened.study, opened.display
    if plan.recorded is not None:
        with simulated_bench(plan.objective, plan.recorded, study, display) as bench:
            bench.pause = settings.pause
            yield bench
        return
    with (
        coordinators_of(settings, opened.store) as coordinators,
        session_resources(settings, coordinators, display, study.budget.workers) as found,
    ):
        bench = Bench(
            objective=plan.objective,
            executor=found.executor,
            pool=found.pool,
            runs=settings.runs / coordinators.folder if coordinators is not None and settings.shared else settings.runs,
            display=display,
            flavour=settings.launcher.flavour,
            run_time_limit_s=study.budget.run_time_limit_s,
            retries=study.budget.infrastructure_retries,
            session=opened.facts.to_dict(),
            alike=plan.alike,
            whole=_whole(study, opened.prepared),
            width=found.width,
            deadline=settings.deadline,
            pause=settings.pause,
            slowest_s=_slowest_s(opened.store),
            coordinators=coordinators,
            scheduler=settings.queue.site.scheduler if settings.queue is not None else "",
            stored=opened.store.count_runs,
            find_job=settings.queue.submitted if settings.queue is not None else lambda _: None,
            end_jobs=settings.queue.end if settings.queue is not None else lambda _: None,
        )
        if settings.desk is not None:
            settings.desk.serve(bench)
        bench.inherit(opened.store.runs())
        yield bench
        bench.end_left_over()


def _check_winner(study: StudyFile) -> None:
    if study.tradeoff is not None:
        msg = f"study {study.name!r} looks for a trade-off: it has no single winner; `autotune best` lists the front"
        raise StudyFileError(msg)


def _whole(study: StudyFile, prepared: Prepared) -> Segment | None:
    most = study.stopping.max_steps if study.stopping else None
    return Segment(most, most, prepared.definition.target) if most else None


def _tune(asker: Asker, bench: Bench, study: StudyFile) -> None:
    runner = TuningLoop(asker, bench, study)
    ending = runner.tune()
    bench.display.line(f"tuning ended: {ending.value}")
    if ending is not Ending.PAYS_NO_MORE:
        # What one wants to know who thinks of more trials.
        runner.look_ahead()


def _judge(store: StudyStore, bench: Bench, study: StudyFile, prepared: Prepared) -> None:
    if study.tradeoff is not None:
        return
    other = bench.coordinators.play(_JUDGE) if bench.coordinators is not None else None
    if other is not None:
        bench.display.line(f"the best are compared with the default by {other}: `autotune show` says what it finds")
        return
    confirm(store, bench, study)
    compare_on_workloads(store, bench, study, prepared.workloads)
    if bench.coordinators is not None:
        bench.coordinators.rest(_JUDGE)


def _is_done(store: StudyStore, study: StudyFile, prepared: Prepared) -> bool:
    """Whether the same command was carried out before: then nothing is started and nothing is written."""
    summary = summarise(store)
    size = prepared.space.size
    wanted = min(study.budget.most, size.value) if size.exact else study.budget.most
    stopped = summary.outlook is not None and summary.outlook.holds(summary.standings, study)
    if (summary.finished < wanted and not stopped) or summary.finished < len(summary.trials):
        return False
    return _is_judged(summary, study, prepared)


def _is_judged(summary: Summary, study: StudyFile, prepared: Prepared) -> bool:
    if study.tradeoff is not None:
        return True
    if not _is_confirmed(summary, study):
        return False
    verdict, metric = summary.present_verdict, summary.standings.metric
    if verdict is None or not verdict.significant(metric):
        return True
    carried = {(one.workload, one.digest): one for one in summary.carried}
    for workload in prepared.workloads:
        found = carried.get((workload.name, workload.digest))
        if found is None or not (found.why or _has_enough(found.verdict, study, metric)):
            return False
    return True


def _is_confirmed(summary: Summary, study: StudyFile) -> bool:
    standings, verdict = summary.standings, summary.present_verdict
    if standings.baseline is None or standings.ranking[0].number == standings.baseline.number:
        return True
    if verdict is None:
        return False
    return _has_enough(verdict, study, standings.metric)


def _has_enough(verdict: Verdict, study: StudyFile, metric: Metric) -> bool:
    if not verdict.known:
        return len(verdict.failures) >= FAILED_OFTEN
    return len(verdict.pairs) >= pairs_wanted(verdict, study.verdict, metric)
