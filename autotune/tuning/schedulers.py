"""Which run scheduler a study has."""

from autotune.records.mix import mixed_inputs
from autotune.results.pareto import second_metric
from autotune.scheduling.repeats import RepeatScheduler
from autotune.scheduling.run_scheduler import RunScheduler
from autotune.scheduling.stored_brackets import brackets_of
from autotune.scheduling.successive_halving import SuccessiveHalvingScheduler
from autotune.storage.study_store import StudyStore
from autotune.studyfile import StudyFile


def scheduler_of(store: StudyStore, study: StudyFile) -> RunScheduler:
    """Return what decides which run comes next: races, or rungs where the program works in steps."""
    definition = store.definition
    if study.stopping is not None:
        return SuccessiveHalvingScheduler(study.stopping, definition.target, brackets_of(store, study, study.stopping))
    repeats = study.repeats if study.tradeoff is None else study.repeats.without_races
    return RepeatScheduler(repeats, second_metric(definition), mixed_inputs(definition))
