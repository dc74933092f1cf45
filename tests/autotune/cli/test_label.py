"""`autotune storage label`, and the list that it arranges: the same labels as the page's."""

import json

import pytest

from autotune.records.labels import Labels
from autotune.storage.readable_study import labels_of
from autotune.storage.stored_study import open_stored_study
from autotune.storage.studies import StoredStudies
from autotune.storage.study_store import StudyStore
from tests.support.command_line import invoke
from tests.support.fakes import definition, small_space


def ran(*words, code=0):
    ended = invoke(*words)
    assert ended.exit_code == code, ended.output
    return ended.output


@pytest.fixture
def storage(sqlite, tmp_path):
    for name in ("mine", "yours"):
        StudyStore.create(sqlite, name, definition(small_space()))
    return ("--storage", str(tmp_path / "autotune.db"))


def listed(*words):
    return [one["study"] for one in json.loads(ran("storage", "list", *words, "--json"))]


def test_tags_are_added_and_taken_away_and_a_note_stays_until_it_is_another(storage, sqlite):
    assert ran("storage", "label", "mine", *storage).strip() == "study 'mine': no tags; no note"
    ran("storage", "label", "mine", "--tag", "paper", "--tag", "blas", "--note", "new BLAS ", *storage)
    ran("storage", "label", "mine", "--tag", "paper", "--untag", "blas", "--untag", "never", "--archive", *storage)
    assert labels_of(open_stored_study(sqlite, "mine")) == Labels(("paper",), "new BLAS", archived=True)
    told = json.loads(ran("storage", "label", "mine", "--note", "", "--unarchive", *storage, "--json"))
    assert told == {"tags": ["paper"], "note": "", "archived": False}


def test_what_the_page_stored_is_shown_and_kept(storage, sqlite):
    StoredStudies(sqlite).note("mine", Labels(("paper",), "from the page", archived=True))
    assert (
        ran("storage", "label", "mine", *storage).strip() == "study 'mine': tags: paper; archived; note: from the page"
    )
    ran("storage", "label", "mine", "--tag", "b", *storage)
    assert labels_of(open_stored_study(sqlite, "mine")) == Labels(("paper", "b"), "from the page", archived=True)


def test_the_list_is_chosen_by_tags_and_leaves_archived_ones_out(storage):
    ran("storage", "label", "mine", "--tag", "paper", "--tag", "blas", *storage)
    ran("storage", "label", "yours", "--tag", "paper", "--archive", *storage)
    assert listed(*storage) == ["mine"]
    assert listed("--archived", *storage) == ["mine", "yours"]
    assert listed("--tag", "paper", "--archived", *storage) == ["mine", "yours"]
    assert listed("--tag", "paper", "--tag", "blas", "--archived", *storage) == ["mine"]
    assert listed("--tag", "none", *storage) == []
    table = ran("storage", "list", *storage)
    assert "paper, blas" in table
    assert "1 archived study is left out (--archived)" in table
    assert "archived" not in ran("storage", "list", "--archived", *storage)
    (told,) = json.loads(ran("storage", "list", *storage, "--json"))
    assert (told["tags"], told["note"], told["archived"]) == (["paper", "blas"], "", False)


def test_what_is_no_label_is_refused_and_nothing_is_stored(storage, sqlite, tmp_path):
    assert "'two words' was given; a tag is a word" in ran(
        "storage", "label", "mine", "--tag", "two words", *storage, code=2
    )
    assert labels_of(open_stored_study(sqlite, "mine")) == Labels()
    missing = ("--storage", str(tmp_path / "none.db"))
    assert invoke("storage", "label", "mine", "--tag", "x", *missing).exit_code != 0
    assert not (tmp_path / "none.db").exists()
