"""Runs in storage: each once, by the coordinator that has its lease, and of their own study only."""

import optuna
import sqlalchemy as sa

from autotune.records.study import Run
from autotune.storage.run_log import Seldom
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took

SPACE = small_space()
RUN = Run(SPACE.default(), 0, outcome=took(1.0), started="2026-01-01T00:00:00+00:00", job={"folder": "/runs/00000-0"})
OTHER = Run(SPACE.default(), 1, outcome=took(2.0), started="2026-01-01T00:00:01+00:00", job={"folder": "/runs/00001-0"})


def study(address, name="mine"):
    return StudyStore.create(address, name, definition(SPACE))


def test_who_has_lost_the_lease_of_a_run_cannot_store_it(address):
    store, later = study(address), study(address)
    silent, other = store.leases("silent"), later.leases("other")
    assert silent.take("00000-0", {})
    assert silent.take("00001-0", {})
    assert other.take_over("00000-0", "silent", 0.0)
    assert set(store.add_runs([RUN, OTHER], ["00000-0", "00001-0"], "silent")) == {"00000-0"}
    assert store.runs() == [OTHER]
    assert not later.add_runs([RUN], ["00000-0"], "other")
    assert store.runs() == [OTHER, RUN]
    assert other.all() == []


def test_one_job_is_one_run_however_often_it_is_stored(address):
    store, again = study(address), study(address)
    store.leases("me").take("00000-0", {})
    assert not store.add_runs([RUN], ["00000-0"], "me")
    # The server has stored it, and its answer was lost.
    assert not store.add_runs([RUN], ["00000-0"], "me")
    assert not again.add_runs([RUN, OTHER])
    assert again.runs() == [RUN, OTHER]


def test_a_study_has_no_runs_of_one_that_another_program_deleted(address):
    before = study(address)
    before.add_runs([RUN])
    before.leases("me").take("00001-0", {})
    optuna.delete_study(study_name="mine", storage=before._storage)
    after = study(address, "another")
    before.leases("me").take("00002-0", {})
    before.add_runs([OTHER])  # by a process that does not know that its study was deleted
    assert (after.runs(), after.leases("").all()) == ([], [])
    with before._storage.engine.connect() as connection:
        left = connection.scalars(sa.text("SELECT trial FROM autotune_runs")).all()
    assert left == [1], "what was deleted with its study is forgotten when there is a new one"


def test_what_is_done_seldom_takes_a_tenth_of_the_time_at_most():
    now, acted = [100.0], []

    def act():
        acted.append(now[0])
        now[0] += 3.0

    seldom = Seldom(act, 2.0, lambda: now[0])
    for _ in range(400):
        seldom()
        now[0] += 0.5
    assert acted[0] == 102.0
    assert acted[1] - acted[0] == 33.0
