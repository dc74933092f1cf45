"""The wall time that jobs of a batch system are asked for: what earlier runs of the study have needed."""

from dataclasses import replace
from math import inf
from pathlib import Path

import pytest

from autotune.coordination.lease_record import LeaseRecord
from autotune.coordination.run_gate import RunGate
from autotune.coordination.walltime import WallTimes
from autotune.execution.capping import Cap
from autotune.execution.segments import Segment
from autotune.execution.task import CUT_SHORT, Task
from autotune.records.series import TUNING
from autotune.records.study import Purpose
from launchers import Job, Resources
from objectives.base import FailureKind
from objectives.ending import LOST
from tests.support.fakes import SECONDS, PaperExecutor, PaperObjective, bowl, failed, took
from tests.support.managers import managed

HOUR_S = 3600.0


def gate_after(*runs: tuple[float, int], site_s: float | None = HOUR_S) -> RunGate:
    gate = RunGate(walltimes=WallTimes(site_s))
    for elapsed_s, cores in runs:
        gate.learn(took(elapsed_s), cores)
    return gate


def task(cores: int = 4, **changes) -> Task:
    job = Job(("program",), Path("/nowhere"), resources=Resources(cores=cores))
    return replace(Task(1, job, PaperObjective()), **changes)


@pytest.mark.parametrize(
    ("runs", "cores", "walltime_s"),
    [
        ([], 4, None),  # nothing is known
        ([(2.0, 4)], 4, 60.0),
        ([(100.0, 4), (50.0, 4)], 4, 300.0),
        ([(100.0, 4)], 1, 1200.0),  # a quarter of the cores may take four times as long
        ([(100.0, 4)], 8, 300.0),
        ([(2000.0, 4)], 4, None),  # the site's is less
    ],
)
def test_a_job_is_asked_the_time_that_suffices_by_the_runs_so_far(runs, cores, walltime_s):
    assert gate_after(*runs).walltimes.set_for(task(cores)).job.walltime_s == walltime_s


def test_a_limit_of_the_run_decides_if_it_is_lower():
    gate, job = gate_after((100.0, 4)), replace(task().job, time_limit_s=200.0)
    assert gate.walltimes.set_for(task(job=job)).job.walltime_s is None
    assert gate.walltimes.set_for(task(cap=Cap(SECONDS, 90.0, 90.0))).job.walltime_s is None
    assert gate.walltimes.set_for(task(cap=Cap(SECONDS, 900.0, 900.0))).job.walltime_s == 300.0


def test_nothing_is_known_of_a_leg_of_a_training_nor_needed_without_a_batch_system():
    assert gate_after((2.0, 4)).walltimes.set_for(task(segment=Segment(3, 9, SECONDS))).job.walltime_s is None
    assert gate_after((2.0, 4), site_s=None).walltimes.set_for(task()).job.walltime_s is None


def test_failed_runs_say_nothing_of_how_long_others_take():
    gate = gate_after((2.0, 4))
    gate.learn(replace(failed(FailureKind.TIMED_OUT), usage=took(900.0).usage), 4)
    assert gate.walltimes.set_for(task()).job.walltime_s == 60.0


def test_runs_on_another_input_are_learnt_separately(tmp_path):
    manager = managed(PaperExecutor(bowl), tmp_path, gate=gate_after((2.0, 4)))
    other = manager.for_objective(PaperObjective())
    assert other.gate.walltimes.set_for(task()).job.walltime_s is None


@pytest.mark.parametrize(("code", "attempt"), [(CUT_SHORT, 1), (LOST, 2)])
def test_a_run_that_needed_more_is_made_again_with_the_wall_time_of_the_site(tmp_path, code, attempt):
    manager = managed(PaperExecutor(bowl), tmp_path, gate=gate_after((2.0, 4)), retries=2)
    run = manager.start(manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001"))
    assert run.task.job.walltime_s == 60.0
    again = manager.plan_retry(run, replace(failed(FailureKind.INFRASTRUCTURE_ERROR), code=code))
    assert again.task.attempt == attempt
    assert manager.start(again).task.job.walltime_s == inf


def test_a_session_that_resumes_a_job_knows_its_wall_time(tmp_path):
    manager = managed(PaperExecutor(bowl), tmp_path, gate=gate_after((2.0, 4)))
    run = manager.start(manager.prepare(1, Purpose({"np": 4}, 1, TUNING), "00001"))
    stored = run.lease("slurm").to_dict()
    assert LeaseRecord.from_dict(stored).task(1, PaperObjective()).job.walltime_s == 60.0
    del stored["walltime_s"]  # a lease of an earlier version
    assert LeaseRecord.from_dict(stored).task(1, PaperObjective()).job.walltime_s is None
