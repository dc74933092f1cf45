"""A run that an earlier session left in a queue is resumed, or ended."""

import json
from dataclasses import replace
from math import inf

import pytest

from autotune.coordination.lease_record import LeaseRecord
from autotune.execution.task import CUT_SHORT, PREEMPTED, describe_job
from autotune.records.series import TUNING, Series
from autotune.records.study import Purpose, Run
from autotune.storage.leases import MemoryLeaseBook
from launchers import Job
from objectives.base import FailureKind
from tests.support.fakes import PaperExecutor, PaperObjective, bowl, failed, took
from tests.support.managers import managed

NAME = "workload-large-abc-1-00-0"
STARTED = "2026-01-01T00:00:00+00:00"
LEFT = Purpose({"np": 4}, 1, Series.workload("large", "abc", 1))


class Queue(PaperExecutor):
    """Knows which jobs of earlier sessions were ended."""

    def __init__(self):
        super().__init__(bowl)
        self.ended_jobs = []

    def end_jobs(self, job_ids):
        self.ended_jobs += job_ids


@pytest.fixture
def manager(tmp_path):
    """Return the manager of a session after one that died, which had a run of an input of weight 0 in a queue."""
    book = MemoryLeaseBook()
    job = Job(("paper", json.dumps({"np": 4})), tmp_path / NAME, name=NAME)
    record = LeaseRecord(LEFT, describe_job(job), NAME, None, STARTED, None, 0, 1, "slurm")
    book.take({NAME: (record.to_dict(), "17")})
    found = managed(Queue(), tmp_path, scheduler="slurm")
    found.registry.leases = book
    found.registry.inherit(())
    assert [lease.name for lease in found.registry.left] == [NAME]
    return found


def test_a_run_of_an_input_of_weight_0_is_resumed_not_made_again(manager):
    elsewhere = manager.for_objective(PaperObjective())
    planned = elsewhere.prepare(0, LEFT, NAME)
    assert planned.task.job_id == "17"
    assert elsewhere.start(planned).started == STARTED
    manager.registry.end_left_over()
    assert manager.executor.ended_jobs == []


def test_later_runs_know_what_the_first_run_that_counts_measured(tmp_path):
    class Searching(PaperObjective):
        def job(self, configuration, context):
            known.append(dict(context.known))
            return super().job(configuration, context)

    known: list[dict[str, float]] = []
    manager = managed(PaperExecutor(bowl), tmp_path)
    manager.factory = replace(manager.factory, objective=Searching())
    for outcome in (None, failed(FailureKind.TIMED_OUT), took(3.0), took(5.0)):
        if outcome is not None:
            manager.learn(outcome, 1, TUNING)
        manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001")
    assert known == [{}, {}, took(3.0).metrics, took(3.0).metrics]
    assert manager.for_objective(PaperObjective()).known == {}


def test_a_job_of_another_configuration_is_ended_and_the_run_is_made(manager):
    planned = manager.prepare(0, Purpose({"np": 2}, 1, LEFT.series), NAME)
    assert planned.task.job_id is None
    assert manager.executor.ended_jobs == ["17"]
    assert manager.start(planned).started > STARTED


def test_a_job_that_nobody_resumes_is_ended_and_its_lease_given_up(manager):
    manager.registry.end_left_over()
    assert manager.executor.ended_jobs == ["17"]
    assert manager.registry.leases.all() == []


@pytest.mark.parametrize(("code", "attempt"), [("command.lost", 3), ("cancelled", 3), ("not-started", None)])
def test_a_job_that_was_lost_with_its_session_does_not_count_as_a_try(manager, code, attempt):
    (lease,) = manager.registry.leases.all()
    manager.registry.leases.take({NAME: ({**lease.record, "attempt": 3}, "17")})
    manager.registry.inherit(())
    run = manager.start(manager.prepare(0, LEFT, NAME))
    lost = replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=code)
    again = manager.plan_retry(run, lost)
    assert (again and again.task.attempt) == attempt
    # A job of this session counts.
    assert again is None or manager.plan_retry(manager.start(again), lost) is None


def test_a_run_that_is_made_again_keeps_its_limits(tmp_path):
    manager = managed(PaperExecutor(bowl), tmp_path)
    planned = manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001")
    job = replace(planned.task.job, time_limit_s=60.0, memory_limit_bytes=2**30)
    run = manager.start(replace(planned, task=replace(planned.task, job=job)))
    again = manager.plan_retry(run, replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=PREEMPTED)).task.job
    assert (again.time_limit_s, again.memory_limit_bytes) == (60.0, 2**30)


def retries(tmp_path, code, most=40):
    """Return the tasks of a run that always ends with this code, until it is given up."""
    manager, tasks = managed(PaperExecutor(bowl), tmp_path), []
    run = manager.start(manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001"))
    while len(tasks) < most:
        planned = manager.plan_retry(run, replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=code))
        if planned is None:
            break
        tasks.append(planned.task)
        run = replace(run, planned=planned)
    return tasks


@pytest.mark.parametrize(("code", "least", "most"), [(PREEMPTED, 20, 25), ("lost", 1, 5)])
def test_a_run_that_is_always_ended_by_others_is_given_up_in_the_end(tmp_path, code, least, most):
    assert least <= len(retries(tmp_path, code)) <= most


@pytest.mark.parametrize("code", ["qe.lost", "cancelled", CUT_SHORT])
def test_a_job_that_may_have_met_its_expected_wall_time_asks_for_the_whole_one(tmp_path, code):
    assert {task.job.walltime_s for task in retries(tmp_path, code, most=2)} == {inf}
    assert {task.job.walltime_s for task in retries(tmp_path, PREEMPTED, most=2)} == {None}


def test_a_job_asks_for_the_whole_wall_time_after_a_preemption_too(tmp_path):
    manager = managed(PaperExecutor(bowl), tmp_path)
    run = manager.start(manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001"))
    for code in (CUT_SHORT, PREEMPTED):
        planned = manager.plan_retry(run, replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=code))
        run = replace(run, planned=planned)
    assert planned.task.job.walltime_s == inf


@pytest.mark.parametrize("stored", [False, True])
def test_the_folder_of_a_run_that_is_made_again_elsewhere_is_removed(tmp_path, stored):
    book, folder = MemoryLeaseBook(), tmp_path / "dead" / "00001"
    folder.mkdir(parents=True)
    (folder / "stdout").write_text("half of it")
    job = describe_job(Job(("paper",), folder, name="00001"))
    purpose = Purpose({"np": 4}, 1, TUNING)
    book.take({"00001": (LeaseRecord(purpose, job, "00001", None, STARTED, None, 0, 1, "").to_dict(), None)})
    registry = managed(PaperExecutor(bowl), tmp_path).registry
    registry.leases = book
    run = Run({"np": 4}, outcome=took(1.0), started=STARTED, job=job)
    registry.inherit([run] if stored else [])
    assert registry.left == []
    assert folder.exists() is stored
    assert book.all() == []
