"""Many programs that ask one study: what is not done for each of them."""

import threading
from collections import Counter

import pytest

from autotune.asktell import AskTell, RunReport
from autotune.storage.leases import SqlLeaseBook
from autotune.storage.study_store import StudyStore
from tests.support.asking import external


def test_no_folder_is_made_for_a_run_that_another_program_makes(sqlite, monkeypatch):
    monkeypatch.setattr("autotune.coordination.run_factory.fresh_folder", lambda folder: pytest.fail(str(folder)))
    with AskTell.open(external(), sqlite) as study:
        assert study.tell(study.ask().lease, RunReport(value=80.0)).state == "complete"


def test_those_who_ask_at_the_same_time_are_served_by_two_transactions(sqlite, monkeypatch):
    counted, waits, go_on = Counter(), threading.Event(), threading.Event()
    stored, took = StudyStore.add_trials, SqlLeaseBook.take

    def add_trials(store, configurations, distributions):
        counted["trials", len(configurations)] += 1
        if counted["trials", 1] == 2:
            waits.set()
            assert go_on.wait(60)
        return stored(store, configurations, distributions)

    def take(book, runs):
        counted["leases", len(runs)] += 1
        took(book, runs)

    monkeypatch.setattr(StudyStore, "add_trials", add_trials)
    monkeypatch.setattr(SqlLeaseBook, "take", take)
    with AskTell.open(external(), sqlite) as study:
        study.tell(study.ask().lease, RunReport(value=80.0))
        counted["leases", 1] = 0
        first = study.ask_future(wait_s=60)
        assert waits.wait(60)
        others = [study.ask_future(wait_s=60) for _ in range(5)]
        go_on.set()
        asked = [future.result() for future in (first, *others)]
        assert len({one.lease for one in asked}) == len({tuple(one.configuration.items()) for one in asked}) == 6
        assert [one.trial for one in asked] == [1, 2, 3, 4, 5, 6]
        assert (counted["trials", 5], counted["leases", 5]) == (1, 1)
        leases = StudyStore.read(sqlite, "mine").leases().all()
        assert {lease.job_id for lease in leases} == {one.lease for one in asked}
