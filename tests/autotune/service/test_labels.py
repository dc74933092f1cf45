"""What users note of a study is stored with it, and says nothing of what was measured."""

import pytest

from autotune.records.labels import Labels
from autotune.records.study import Run
from autotune.service.problems import ProblemError
from autotune.storage.stored_study import open_stored_study
from autotune.storage.study_store import StudyStore
from tests.autotune.service.test_studies import catalogue, studies  # noqa: F401  fixtures
from tests.support.fakes import definition, small_space, took
from tests.support.stored import add_trial


def test_labels_are_stored_with_the_study_and_take_the_place_of_those_before(studies, sqlite):  # noqa: F811
    StudyStore.create(sqlite, "mine", definition(small_space()))
    brief = studies.brief("mine")
    assert (brief.tags, brief.note, brief.archived) == ([], "", False)
    studies.label("mine", Labels(("paper", "blas"), "with the new BLAS", archived=True))
    brief = studies.label("mine", Labels(("paper",), "again"))
    assert (brief.tags, brief.note, brief.archived) == (["paper"], "again", False)
    assert open_stored_study(sqlite, "mine").runs() == []
    with pytest.raises(ProblemError, match="there is no study 'yours'"):
        studies.label("yours", Labels())


def test_a_study_says_when_its_runs_began_and_whose_they_are(studies, sqlite):  # noqa: F811
    space = small_space()
    store = StudyStore.create(sqlite, "mine", definition(space))
    trial = add_trial(store, space, space.default())
    for day in ("2026-11-22", "2026-11-21", "2026-11-23"):
        session = {"user": "ada"}
        begun = f"{day}T09:00:00.125"
        run = Run(trial.configuration, trial.number, outcome=took(2.0), started=begun, session=session)
        store.add_runs([run])
    brief = studies.brief("mine")
    assert (brief.started, brief.newest, brief.by) == ("2026-11-21T09:00:00", "2026-11-23T09:00:00", "ada")


@pytest.mark.parametrize(
    ("tags", "note", "words"),
    [(("two words",), "", "tags: 'two words'"), (("x",) * 21, "", "at most 20"), ((), "x" * 2001, "note: ")],
)
def test_what_is_no_label_is_refused(tags, note, words):
    with pytest.raises(ValueError, match=words):
        Labels(tags, note)
