"""One session of a study: from a study file to its summary, with everything that must be held meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.ablation import Ablation, ablate
from autotune.bench import Bench
from autotune.carry import carry
from autotune.confirm import confirm, pairs_wanted
from autotune.cores import CoreClaim, CorePool, Pool
from autotune.deadline import Deadline
from autotune.display import Display
from autotune.errors import CannotRunHereError, StorageError, StudyFileError, UnfinishedError
from autotune.executor import Executor
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

if TYPE_CHECKING:
    from autotune.cluster import Cluster


@dataclass(frozen=True)
class Place:
    """Where a study is kept and run, and what is done if somebody else holds it there.

    `runs` is the folder for the folders of its runs, `file` the study file. With `ray_address` runs are made on the
    nodes of that Ray cluster, after it has `ray_nodes` of them; `machine` are then those nodes, and `cluster` the
    cluster, once it is joined. All must have ended by the `deadline`.
    """

    url: str
    name: str
    runs: Path
    machine: Machine
    launcher: LocalLauncher
    file: Path | None = None
    if_held: IfHeld = IfHeld.LEAVE
    ray_address: str | None = None
    ray_nodes: int = 1
    deadline: Deadline | None = None
    cluster: "Cluster | None" = None


def default_runs(url: str, name: str) -> Path:
    """Return where the runs of a study are kept unless told otherwise: beside its storage."""
    return state_folder(url) / "autotune-runs" / name


def run_study(study: StudyFile, place: Place, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the winner; everything that ended is in storage whatever happens.

    Raises:
        AutotuneError: the study is busy, cannot run here, nothing worked, or its time is over before it is done.
    """
    check_sampler(study.sampler)
    with _opened(study, place, display) as (here, store, prepared, facts):
        store.use(sampler_of(prepared.space, study.sampler))
        if not _is_done(store, study, prepared):
            _warm_up(store, study, here, prepared, display)
            with _says_what_remains(store, study), _bench(study, here, prepared, facts, display) as bench:
                bench.slowest_s = _slowest_s(store)
                _tune(store, bench, study, prepared)
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
        finished = sum(trial.settled for trial in store.trials())
        wanted = "all" if finished >= study.budget.most else f"{finished} of at most {study.budget.most}"
        done = f"{wanted} trials are finished" + (", their comparison is not" if wanted == "all" else "")
        raise UnfinishedError(f"{error}\nevery finished run is stored: {done}") from error


def _slowest_s(store: StudyStore) -> float | None:
    return max((run.outcome.usage.elapsed_s for run in store.runs() if run.outcome.complete), default=None)


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
    with _opened(study, place, display) as (here, store, prepared, facts):
        if not _is_judged(summarise(store), study, prepared):
            with _bench(study, here, prepared, facts, display) as bench:
                _judge(store, bench, study, prepared)
        return summarise(store)


def ablate_study(study: StudyFile, place: Place, display: Display, rounds: int) -> Ablation | None:
    """Take the winner of a study apart; None if nothing beat the default.

    Raises:
        AutotuneError: the study is busy or cannot run here, or has no single winner.
    """
    _check_winner(study)
    with (
        _opened(study, place, display) as (here, store, prepared, facts),
        _bench(study, here, prepared, facts, display) as bench,
    ):
        return ablate(store, bench, prepared.space, study, rounds)


def scale_study(study: StudyFile, place: Place, display: Display, rounds: int) -> list[Point]:
    """Run the configuration to use with one process, two, and so on.

    Raises:
        AutotuneError: the study is busy, cannot run here, or does not say what counts processes.
    """
    with (
        _opened(study, place, display) as (here, store, prepared, facts),
        _bench(study, here, prepared, facts, display) as bench,
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
def _opened(
    study: StudyFile, asked: Place, display: Display
) -> Iterator[tuple[Place, StudyStore, Prepared, SessionFacts]]:
    replay = study.objective == REPLAY
    with _held(asked, display, claim=not replay) as place:
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
            yield place, used, prepared, facts


@contextmanager
def _bench(
    study: StudyFile, place: Place, prepared: Prepared, facts: SessionFacts, display: Display
) -> Iterator[Bench]:
    plan = prepared.plan
    if plan.recorded is not None:
        with simulated_bench(plan.objective, plan.recorded, study, display) as bench:
            yield bench
        return
    with _crew(place) as (executor, pool):
        try:
            yield Bench(
                objective=plan.objective,
                executor=executor,
                pool=pool,
                runs=place.runs,
                display=display,
                flavour=place.launcher.flavour,
                run_time_limit_s=study.budget.run_time_limit_s,
                retries=study.budget.infrastructure_retries,
                session=facts.to_dict(),
                alike=plan.alike,
                whole=_whole(study, prepared),
                deadline=place.deadline,
            )
        finally:
            executor.cancel_all()


@contextmanager
def _crew(place: Place) -> Iterator[tuple[Executor, Pool]]:
    """Provide what runs tasks, and where: on the nodes of the cluster that was joined, or on this machine."""
    from autotune.cluster import ClusterExecutor, RayExecutor, local_cluster  # noqa: PLC0415  a replay needs no Ray

    if place.cluster is not None:
        yield ClusterExecutor(place.cluster, place.launcher), place.cluster.pool
        return
    with local_cluster(place.machine.cores):
        yield RayExecutor(place.machine.cores, place.launcher), CorePool(place.machine.cpus)


@contextmanager
def _held(place: Place, display: Display, *, claim: bool) -> Iterator[Place]:
    """Hold the study and its cores, and join its cluster; return the place as it is then."""
    lock = StudyLock.acquire(lock_path(place.url, place.name), place.name, place.if_held, display.line)
    try:
        if claim and place.ray_address is not None:
            from autotune.cluster import joined_cluster  # noqa: PLC0415

            with joined_cluster(place.ray_address, place.runs, display.line, place.ray_nodes) as cluster:
                yield replace(place, machine=cluster.machine, cluster=cluster)
            return
        wait_by = display.line if place.if_held is IfHeld.WAIT else None
        cores = CoreClaim.claim(place.machine.cpus if claim else (), wait_by=wait_by)
        try:
            yield place
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
