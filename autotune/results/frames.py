"""The trials and the runs of a stored study as pandas tables."""

import pandas as pd

from autotune.results.export import run_rows
from autotune.results.summary import summarise
from autotune.results.trial_columns import row_of, trial_columns
from autotune.storage.address import DEFAULT, storage_url
from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore


def read_trials(study: str, storage: str = DEFAULT) -> pd.DataFrame:
    """Return a row for each trial of a study: its state, value, speed-up, metrics and parameters.

    Raises:
        AutotuneError: There is no such storage or study.
    """
    summary = summarise(open_stored_study(storage_url(storage), study))
    columns = trial_columns(summary.standings, summary.definition)
    return pd.DataFrame(
        [row_of(trial, columns) for trial in summary.trials], columns=list(dict.fromkeys(one.name for one in columns))
    ).set_index("trial")


def read_runs(study: str, storage: str = DEFAULT) -> pd.DataFrame:
    """Return a row for each run of a study that counts, with its parameters and metrics.

    Raises:
        AutotuneError: There is no such storage or study.
    """
    return pd.DataFrame(run_rows(StudyStore.read(storage_url(storage), study)))
