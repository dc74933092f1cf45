"""Which run scheduler a study has."""

from autotune.records.mix import mixed_inputs
from autotune.results.pareto import tradeoff_metrics
from autotune.scheduling.paces import Paces
from autotune.scheduling.repeats import RepeatScheduler
from autotune.scheduling.run_scheduler import RunScheduler
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
    return RepeatScheduler(repeats, front, mixed_inputs(definition), paces=Paces(space))
