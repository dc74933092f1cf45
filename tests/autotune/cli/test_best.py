"""`autotune best` of a study in which nothing worked: the first failure, and no winner or ledger."""

import pytest

from autotune.errors import ExitCode, NothingWorkedError
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from tests.support.command_line import invoke
from tests.support.fakes import definition, failed, small_space
from tests.support.stored import add_trial

SPACE = small_space()


@pytest.fixture
def store(sqlite):
    return StudyStore.create(sqlite, "m4", definition(SPACE))


def test_a_study_in_which_nothing_worked_says_why(store, tmp_path):
    add_trial(store, SPACE, SPACE.default(), failed(FailureKind.APPLICATION_ERROR, "solver: no input"))
    ended = invoke("best", "m4", "--storage", str(tmp_path / "autotune.db"))
    assert isinstance(ended.exception, NothingWorkedError)
    assert ended.exception.exit_code is ExitCode.NOTHING_WORKED
    assert str(ended.exception) == "trial 0 (the default) failed: solver: no input; autotune trials m4 shows all"
    assert ended.output == ""


def test_a_study_without_runs_has_no_measurement_yet(store, tmp_path):
    ended = invoke("best", "m4", "--storage", str(tmp_path / "autotune.db"))
    assert str(ended.exception) == "study 'm4' has no valid measurement yet"
