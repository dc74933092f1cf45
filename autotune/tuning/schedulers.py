"""Which run scheduler a study has."""

from dataclasses import dataclass, field

from autotune.records.mix import mixed_inputs
from autotune.records.study import Run
from autotune.results.pareto import tradeoff_metrics
from autotune.scheduling.paces import Paces
from autotune.scheduling.repeats import RepeatScheduler
from autotune.scheduling.run_scheduler import RunScheduler
from autotune.scheduling.short_runs import ShortRunScheduler
from autotune.scheduling.stored_brackets import brackets_of
from autotune.scheduling.successive_halving import SuccessiveHalvingScheduler
from autotune.statistics.front_race import FrontRace
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile
from spaces import Space


def scheduler_of(store: StudyStore, study: StudyFile, space: Space) -> RunScheduler:
    """Return what decides which run comes next: races, or rungs where the program works in steps."""
    definition = store.definition
    if study.stopping is not None:
        return SuccessiveHalvingScheduler(study.stopping, definition.target, brackets_of(store, study, study.stopping))
    metrics = tradeoff_metrics(definition)
    front = FrontRace(metrics, study.repeats.statistic) if metrics else None
    repeats = study.repeats if study.decisions is None else study.repeats.for_a_table
    paces = Paces(space, study.fidelity.high if study.fidelity is not None else None)
    scheduler = RepeatScheduler(repeats, front, mixed_inputs(definition), paces=paces)
    if study.fidelity is None:
        return scheduler
    return ShortRunScheduler(scheduler, study.fidelity, space, _EveryRun(store))


@dataclass
class _EveryRun:
    """Returns every run of a study, whoever made it; all are read again when there are more."""

    store: StudyStore
    _known: list[Run] = field(default_factory=list)

    def __call__(self) -> list[Run]:
        # Not `store.runs`, which takes note of what was read for those who read the trials anew.
        if self.store.count_runs() != len(self._known):
            self._known = list(self.store.keyed_runs().values())
        return self._known
