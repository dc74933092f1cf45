import pytest

from autotune.storage.leases import MemoryLeaseBook, SqlLeaseBook
from autotune.storage.optuna_storage import open_for_writing

RECORD = {"trial": 3, "series": "", "round": 0, "configuration": {"np": 4, "blas": None, "x": 0.1}}


def stored(url, study="1-a"):
    engine = open_for_writing(url, SqlLeaseBook.create_table).engine
    return SqlLeaseBook(url, engine, study)


@pytest.fixture(params=["memory", "sqlite", "postgresql"])
def book(request):
    return MemoryLeaseBook() if request.param == "memory" else stored(request.getfixturevalue(request.param))


def seen(book):
    return [(lease.place, lease.record, lease.job_id) for lease in book.all()]


def test_what_was_taken_is_there_until_it_is_given_up(book):
    book.take({})
    book.take({"b": ({}, "4711"), "a": (RECORD, None)})
    book.note_job("a", "4712")
    book.note_job("elsewhere", "1")
    assert seen(book) == [("a", RECORD, "4712"), ("b", {}, "4711")]
    book.release("a")
    book.release("a")
    assert seen(book) == [("b", {}, "4711")]


def test_a_run_that_is_launched_once_more_has_no_job_yet(book):
    book.take({"a": (RECORD, "4711")})
    book.take({"a": (RECORD | {"round": 1}, None), "c": ({}, None)})
    assert seen(book) == [("a", RECORD | {"round": 1}, None), ("c", {}, None)]


def test_studies_in_one_storage_keep_their_leases_apart(address):
    one, other = stored(address), stored(address, study="2-b")
    one.take({"a": ({"study": 1}, None)})
    other.take({"a": ({"study": 2}, None)})
    one.release("a")
    assert seen(one) == []
    assert seen(other) == [("a", {"study": 2}, None)]


def test_a_row_that_is_of_no_run_is_no_lease(sqlite):
    book = stored(sqlite)
    book.take({"role:verdict": ({}, None)})
    assert seen(book) == []
