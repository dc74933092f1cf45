"""One session of a study: from a prepared study to its summary, with everything that must be held meanwhile."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from autotune.cluster import RayExecutor, local_cluster
from autotune.confirm import FAILED_PAIRS, confirm
from autotune.cores import CoreClaim, CorePool
from autotune.display import Display
from autotune.lock import StudyLock
from autotune.machine import Machine
from autotune.prepare import prepare
from autotune.records import baseline
from autotune.runner import Bench, StudyRunner
from autotune.search.sampler import ValidSetSampler
from autotune.search.store import StudyStore
from autotune.storage_url import lock_path, state_folder
from autotune.studyfile import StudyFile
from autotune.summary import Summary, summarise
from launchers.local import LocalLauncher, sweep
from spaces import Space


@dataclass(frozen=True)
class Place:
    """Where a study is kept and run. `runs` is the folder for the folders of its runs."""

    url: str
    name: str
    runs: Path
    machine: Machine
    launcher: LocalLauncher


def default_runs(url: str, name: str) -> Path:
    """Return where the runs of a study are kept unless told otherwise: beside its storage."""
    return state_folder(url) / "autotune-runs" / name


def run_study(study: StudyFile, place: Place, display: Display) -> Summary:
    """Tune until the budget is used, then confirm the winner; everything that ended is in storage whatever happens.

    Raises:
        AutotuneError: the study is busy, cannot run here, or nothing worked.
    """
    with _held(place):
        sweep(place.runs)
        display.line(f"machine: {place.machine}")
        prepared = prepare(study, place.machine, place.launcher, place.runs / "plan")
        for note in (*place.launcher.notes(), *prepared.plan.notes):
            display.line(note)
        size = prepared.space.size
        about = "" if size.exact else "about "
        display.line(f"space: {about}{size.value} valid configurations of {prepared.space.raw_size} combinations")
        store = StudyStore.create(place.url, place.name, prepared.definition)
        sampler = study.sampler
        store.use(
            ValidSetSampler(prepared.space, seed=sampler.seed, startup=sampler.startup, model=sampler.name == "gp")
        )
        if _is_done(store, study, prepared.space):
            return summarise(store)
        with local_cluster(place.machine.cores):
            executor = RayExecutor(place.machine.cores, place.launcher)
            bench = Bench(
                objective=prepared.plan.objective,
                executor=executor,
                pool=CorePool(place.machine.cpus),
                runs=place.runs,
                display=display,
                flavour=place.launcher.flavour,
                run_time_limit_s=study.budget.run_time_limit_s,
                retries=study.budget.infrastructure_retries,
            )
            try:
                ending = StudyRunner(store, prepared.space, bench, study.budget).tune()
                display.line(f"tuning ended: {ending.value}")
                confirm(store, bench, study.verdict, sampler.seed)
            finally:
                executor.cancel_all()
    return summarise(store)


@contextmanager
def _held(place: Place) -> Iterator[None]:
    lock = StudyLock.acquire(lock_path(place.url, place.name), place.name)
    try:
        claim = CoreClaim.claim(place.machine.cpus)
        try:
            yield
        finally:
            claim.release()
    finally:
        lock.release()


def _is_done(store: StudyStore, study: StudyFile, space: Space) -> bool:
    """Whether the same command was carried out before: then nothing is started and nothing is written."""
    summary = summarise(store)
    wanted = min(study.budget.trials, space.size.value) if space.size.exact else study.budget.trials
    if summary.finished < wanted or summary.finished < len(summary.trials):
        return False
    best, default, verdict = summary.best, baseline(summary.trials), summary.verdict
    if best is None or default is None or best.number == default.number:
        return True
    if verdict is None or verdict.winner != best.number:
        return False
    return len(verdict.pairs) >= study.verdict.pairs or len(verdict.failures) >= FAILED_PAIRS
