"""Store trials whose configurations the test chooses, without a sampler."""

from autotune.records.outcome import Outcome
from autotune.records.study import Run, TrialRecord
from autotune.search.distributions import distributions_of
from autotune.storage.observation import Observation
from autotune.storage.study_store import StudyStore
from spaces import Configuration, Space


def add_trial(
    store: StudyStore,
    space: Space,
    configuration: Configuration,
    *outcomes: Outcome,
    worth: Observation | None = None,
) -> TrialRecord:
    """Store a trial with a run for each outcome, and settle it if it has a `worth`."""
    number = store.add_trial(configuration, distributions_of(space))
    store.add_runs([Run(configuration, number, outcome=outcome) for outcome in outcomes])
    if worth is not None:
        store.settle_all({number: worth})
    return TrialRecord(number, configuration)
