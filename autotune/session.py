"""One session of a study: from a study file to its summary, with everything that must be held meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from autotune.ablation import Ablation, ablate
from autotune.bench import Bench
from autotune.carry import carry
from autotune.confirm import confirm, pairs_wanted
from autotune.cores import CoreClaim, CorePool
from autotune.display import Display
from autotune.errors import StorageError, StudyFileError
from autotune.legs import Leg
from autotune.lock import IfHeld, StudyLock
from autotune.machine import Machine
from autotune.performance.gather import measurements, setting_of
from autotune.prepare import Prepared, prepare
from autotune.provenance import SessionFacts, session_facts
from autotune.records import REPLAY, REPLAY_NOTICE
from autotune.rounds import FAILED_OFTEN
from autotune.runner import Ending, StudyRunner
from autotune.scaling import Point, scale
from autotune.search.samplers import check_sampler, sampler_of
from autotune.search.store import StudyStore
from autotune.simulated import simulated_bench
from autotune.storage_url import lock_path, state_folder
from autotune.studyfile import StudyFile, parse
from autotune.summary import Summary, summarise
from autotune.verdict import Verdict
from autotune.warmstart import guide, warm_start
from launchers.local import LocalLauncher, sweep
from objectives.base import Metric


@dataclass(frozen=True)
class Place:
    """Where a study is kept and run, and what is done if somebody else holds it there.

    `runs` is the folder for the folders of its runs, `file` the study file.
    """

    url: str
    name: str
    runs: Path
    machine: Machine
    launcher: LocalLauncher
    file: Path | None = None
    if_held: IfHeld = IfHeld.LEAVE


def default_runs(url: str, name: str) -> Path:
    """Return where the runs of a study are kept unless told otherwise: beside its storage."""
    return state_folder(url) / "autotune-runs" / name


def run_study(study: StudyFile, place: Place, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the winner; everything that ended is in storage whatever happens.

    Raises:
        AutotuneError: the study is busy, cannot run here, or nothing worked.
    """
    check_sampler(study.sampler)
    with _opened(study, place, display) as (store, prepared, facts):
        store.use(sampler_of(prepared.space, study.sampler))
        if not _is_done(store, study, prepared):
            _warm_up(store, study, place, prepared, display)
            with _bench(study, place, prepared, facts, display) as bench:
                _tune(store, bench, study, prepared)
                _judge(store, bench, study, prepared)
        return summarise(store)


def _warm_up(store: StudyStore, study: StudyFile, place: Place, prepared: Prepared, display: Display) -> None:
    """Let the search begin with what was predicted; a replay, whose times are simulated, has nothing to go by."""
    if not study.sampler.warm_start or prepared.definition.replay or study.tradeoff is not None:
        return
    setting = setting_of(store.name, prepared.definition)
    try:
        told = measurements([place.url], setting.program)
    except StorageError as error:
        display.line(f"no warm start: {error}")
        return
    known = [one for one in told if one.setting.source != setting.source]
    try:
        found = warm_start(store, prepared.space, setting, known, display)
    except Exception as error:  # noqa: BLE001  whatever a model stumbles over, a study can do without it
        display.line(f"no warm start: the model failed: {' '.join(str(error).split()) or type(error).__name__}")
        return
    store.start_with(found.proposals)
    store.guide_by(guide(prepared.space, setting, known))


def confirm_study(study: StudyFile, place: Place, display: Display) -> Summary:
    """Compare the best trials of a study with its baseline, or go on comparing them.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with _opened(study, place, display) as (store, prepared, facts):
        if not _is_judged(summarise(store), study, prepared):
            with _bench(study, place, prepared, facts, display) as bench:
                _judge(store, bench, study, prepared)
        return summarise(store)


def ablate_study(study: StudyFile, place: Place, display: Display, rounds: int) -> Ablation | None:
    """Take the winner of a study apart; None if nothing beat the default.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with (
        _opened(study, place, display) as (store, prepared, facts),
        _bench(study, place, prepared, facts, display) as bench,
    ):
        return ablate(store, bench, prepared.space, study, rounds)


def scale_study(study: StudyFile, place: Place, display: Display, rounds: int) -> list[Point]:
    """Run the configuration to use with one process, two, and so on.

    Raises:
        AutotuneError: the study is busy, cannot run here, or does not say what counts processes.
    """
    with (
        _opened(study, place, display) as (store, prepared, facts),
        _bench(study, place, prepared, facts, display) as bench,
    ):
        return scale(store, bench, prepared.space, study, rounds)


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
def _opened(study: StudyFile, place: Place, display: Display) -> Iterator[tuple[StudyStore, Prepared, SessionFacts]]:
    replay = study.objective == REPLAY
    with _held(place, display, claim=not replay):
        sweep(place.runs)
        display.line(REPLAY_NOTICE if replay else f"machine: {place.machine}")
        facts = session_facts(place.machine, place.launcher.flavour, place.file)
        prepared = prepare(study, place.machine, place.launcher, place.runs / "plan", facts.identity)
        for note in (*(() if replay else place.launcher.notes()), *prepared.plan.notes):
            display.line(note)
        size = prepared.space.size
        about = "" if size.exact else "about "
        display.line(f"space: {about}{size.value} valid configurations of {prepared.space.raw_size} combinations")
        store = StudyStore.create(place.url, place.name, prepared.definition)
        with store.mirrored() if replay else nullcontext(store) as used:
            yield used, prepared, facts


@contextmanager
def _bench(
    study: StudyFile, place: Place, prepared: Prepared, facts: SessionFacts, display: Display
) -> Iterator[Bench]:
    plan = prepared.plan
    if plan.recorded is not None:
        with simulated_bench(plan.objective, plan.recorded, study, display) as bench:
            yield bench
        return
    from autotune.cluster import RayExecutor, local_cluster  # noqa: PLC0415  a replay does without Ray

    with local_cluster(place.machine.cores):
        executor = RayExecutor(place.machine.cores, place.launcher)
        try:
            yield Bench(
                objective=plan.objective,
                executor=executor,
                pool=CorePool(place.machine.cpus),
                runs=place.runs,
                display=display,
                flavour=place.launcher.flavour,
                run_time_limit_s=study.budget.run_time_limit_s,
                retries=study.budget.infrastructure_retries,
                session=facts.to_dict(),
                alike=plan.alike,
                whole=_whole(study, prepared),
            )
        finally:
            executor.cancel_all()


@contextmanager
def _held(place: Place, display: Display, *, claim: bool) -> Iterator[None]:
    lock = StudyLock.acquire(lock_path(place.url, place.name), place.name, place.if_held, display.line)
    try:
        wait_by = display.line if place.if_held is IfHeld.WAIT else None
        cores = CoreClaim.claim(place.machine.cpus if claim else (), wait_by=wait_by)
        try:
            yield
        finally:
            cores.release()
    finally:
        lock.release()


def _check_winner(study: StudyFile) -> None:
    if study.tradeoff is not None:
        msg = f"study {study.name!r} looks for a trade-off: it has no single winner; `autotune best` lists the front"
        raise StudyFileError(msg)


def _whole(study: StudyFile, prepared: Prepared) -> Leg | None:
    most = study.stopping.max_steps if study.stopping else None
    return Leg(most, most, prepared.definition.target) if most else None


def _tune(store: StudyStore, bench: Bench, study: StudyFile, prepared: Prepared) -> None:
    runner = StudyRunner(store, prepared.space, bench, study)
    ending = runner.tune()
    bench.display.line(f"tuning ended: {ending.value}")
    if ending is not Ending.PAYS_NO_MORE:
        # What one wants to know who thinks of more trials.
        runner.look_ahead()


def _judge(store: StudyStore, bench: Bench, study: StudyFile, prepared: Prepared) -> None:
    if study.tradeoff is not None:
        return
    confirm(store, bench, study)
    carry(store, bench, study, prepared.workloads)


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
