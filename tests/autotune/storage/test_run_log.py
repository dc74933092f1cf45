"""Runs in storage: each once, and of their own study only."""

import optuna
import sqlalchemy as sa

from autotune.records.study import Run
from autotune.storage.run_log import Throttle
from autotune.storage.study_store import StudyStore
from tests.support.fakes import definition, small_space, took

SPACE = small_space()
RUN = Run(SPACE.default(), 0, outcome=took(1.0), started="2026-01-01T00:00:00+00:00", job={"folder": "/runs/00000-0"})
OTHER = Run(SPACE.default(), 1, outcome=took(2.0), started="2026-01-01T00:00:01+00:00", job={"folder": "/runs/00001-0"})


def study(address, name="mine"):
    return StudyStore.create(address, name, definition(SPACE))


def test_one_job_is_one_run_however_often_it_is_stored(address):
    store, again = study(address), study(address)
    store.leases().take({"00000-0": ({}, None), "00001-0": ({}, None)})
    store.add_runs([RUN], ["00000-0"])
    # The server has stored it, and its answer was lost.
    store.add_runs([RUN], ["00000-0"])
    assert [lease.place for lease in store.leases().all()] == ["00001-0"]
    again.add_runs([RUN, OTHER])
    assert again.runs() == [RUN, OTHER]


def test_a_study_has_no_runs_of_one_that_another_program_deleted(address):
    before = study(address)
    before.add_runs([RUN])
    before.leases().take({"00001-0": ({}, None)})
    optuna.delete_study(study_name="mine", storage=before._storage)
    after = study(address, "another")
    before.leases().take({"00002-0": ({}, None)})
    before.add_runs([OTHER])  # by a process that does not know that its study was deleted
    assert (after.runs(), after.leases().all()) == ([], [])
    with before._storage.engine.connect() as connection:
        left = connection.scalars(sa.text("SELECT trial FROM autotune_runs")).all()
    assert left == [1], "what was deleted with its study is forgotten when there is a new one"


def test_what_is_done_seldom_takes_a_tenth_of_the_time_at_most():
    now, acted = [100.0], []

    def act():
        acted.append(now[0])
        now[0] += 3.0

    seldom = Throttle(act, 2.0, lambda: now[0])
    for _ in range(400):
        seldom()
        now[0] += 0.5
    assert acted[0] == 102.0
    assert acted[1] - acted[0] == 33.0
