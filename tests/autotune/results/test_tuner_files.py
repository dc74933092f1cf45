"""Measurements in the formats of other tuners: they can be read again and have the measured values."""

import json

import pytest

from autotune.records.study import Run
from autotune.results.tuner_files import kernel_tuner_cache, t4_results
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from objectives.replay.options import ReplayOptions
from objectives.replay.plan import read_table
from tests.support.fakes import capped, definition, failed, small_space, took

UNSET = {"np": 1, "npool": 1}
SET = {"np": 4, "npool": 2, "blas": "fast"}
WRONG = {"np": 2, "npool": 1, "blas": "fast"}


@pytest.fixture
def store():
    made = StudyStore.in_memory(definition(small_space()))
    made.add_runs(
        [
            Run(SET, 0, outcome=took(3.0)),
            Run(SET, 0, outcome=took(5.0)),
            Run(UNSET, 1, outcome=took(1.0)),
            Run(WRONG, 2, outcome=failed(FailureKind.INVALID_RESULT, "wrong")),
            Run({"np": 2}, 3, outcome=capped(4.0)),
        ]
    )
    return made


@pytest.mark.parametrize("form", [kernel_tuner_cache, t4_results])
def test_what_is_written_is_read_again_as_it_was_measured(store, form):
    read = read_table(json.dumps(form(store)), ReplayOptions(table="x.json"))
    of = {tuple(read.configuration(key).items()): recording for key, recording in read.recordings.items()}
    assert len(of) == 3  # the fourth has only a bound
    assert [run.value for run in of[tuple(SET.items())].runs] == [3.0, 5.0]
    assert [run.value for run in of[tuple(UNSET.items())].runs] == [1.0]
    assert [run.failure is None for run in of[tuple(WRONG.items())].runs] == [False]


def test_a_cache_has_the_keys_by_which_kernel_tuner_looks_configurations_up(store):
    cache = kernel_tuner_cache(store)
    assert cache["tune_params_keys"] == ["np", "npool", "blas"]
    assert cache["tune_params"]["blas"][-1] is None
    assert list(cache["cache"]) == ["4,2,fast", "1,1,None", "2,1,fast"]
    entry = cache["cache"]["4,2,fast"]
    assert (entry["time"], entry["times"]) == (4000.0, [3000.0, 5000.0])
    assert entry["benchmark_time"] >= 8000.0
