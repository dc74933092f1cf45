"""Submissions that were accepted without an answer: exactly one job runs in a folder, and it is the one followed.

The scripts run here some time after their submission, as a scheduler would run them.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState
from launchers.batch import QueueFullError, RefusedError
from launchers.batch.commands import Answer
from launchers.batch.job_files import ANSWER_FILE, SCRIPT_FILE
from launchers.batch_systems.base import QUEUE_LOG
from launchers.node import JOB_FILE
from launchers.supervisor import STATUS_FILE
from tests.launchers.answers import PATIENCE_S, end, start

TIMED_OUT = Answer(1, stderr="sbatch: error: Batch job submission failed: Socket timed out on send/recv operation")


@pytest.fixture
def job(tmp_path) -> Job:
    folder = tmp_path / "run"
    folder.mkdir()
    return Job(("sh", "-c", f"echo {'$'}SLURM_JOB_ID >>{tmp_path}/ran; exit 3"), folder)


@pytest.fixture
def ran(tmp_path):
    """The jobs that ran, by number."""
    path = tmp_path / "ran"
    return lambda: path.read_text().split() if path.exists() else []


@pytest.fixture
def lose(launcher, queue, job):
    """Submit without an answer; return the script that was accepted."""

    def lose() -> str:
        queue.refusal = TIMED_OUT
        with pytest.raises(QueueFullError):
            launcher.submit(job)
        queue.refusal = None
        return (job.folder / SCRIPT_FILE).read_text()

    return lose


def run(script: str, number: str, folder: Path) -> int:
    path = folder / f"script-{number}"
    path.write_text(script)
    return subprocess.run(["bash", path], env=dict(os.environ) | {"SLURM_JOB_ID": number}, check=False).returncode


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != QUEUE_LOG}


def test_earlier_submission_ends_at_once_and_leaves_no_trace(launcher, job, lose, ran, tmp_path):
    earlier = lose()
    job_id = launcher.submit(job)
    before = contents(job.folder)
    assert run(earlier, "77", tmp_path) != 0
    assert contents(job.folder) == before
    assert "another job was submitted" in (job.folder / QUEUE_LOG).read_text()
    assert run((job.folder / SCRIPT_FILE).read_text(), "1", tmp_path) == 3
    assert ran() == ["1"]
    assert launcher.poll([job_id])[job_id].exit_code == 3


def test_only_this_user_may_read_what_a_job_gets(launcher, job):
    launcher.submit(job)
    modes = {name: (job.folder / name).stat().st_mode & 0o777 for name in (JOB_FILE, SCRIPT_FILE)}
    assert modes == {JOB_FILE: 0o600, SCRIPT_FILE: 0o600}


def test_earlier_submission_may_start_when_the_run_is_over(launcher, job, lose, ran, tmp_path):
    earlier = lose()
    launcher.submit(job)
    run((job.folder / SCRIPT_FILE).read_text(), "1", tmp_path)
    before, log = contents(job.folder), (job.folder / QUEUE_LOG).read_text()
    assert run(earlier, "77", tmp_path) != 0
    assert contents(job.folder) == before
    assert (job.folder / QUEUE_LOG).read_text().startswith(log)
    (job.folder / JOB_FILE).unlink()
    assert run(earlier, "78", tmp_path) != 0
    assert ran() == ["1"]


def test_submission_that_was_accepted_twice_runs_once(launcher, job, ran, tmp_path):
    launcher.submit(job)
    script = (job.folder / SCRIPT_FILE).read_text()
    assert run(script, "1", tmp_path) == 3
    before = contents(job.folder)
    assert run(script, "2", tmp_path) == 1
    assert contents(job.folder) == before
    assert ran() == ["1"]


def test_job_that_its_scheduler_starts_again_runs_again(launcher, job, ran, tmp_path):
    launcher.submit(job)
    script = (job.folder / SCRIPT_FILE).read_text()
    assert [run(script, "1", tmp_path) for _ in range(2)] == [3, 3]
    assert ran() == ["1", "1"]


def test_job_that_started_without_an_answer_is_not_submitted_again(launcher, queue, job, lose, tmp_path):
    run(lose(), "77", tmp_path)
    job_id = launcher.submit(job)
    assert job_id.split(":")[1] == "77"
    assert launcher.poll([job_id])[job_id].exit_code == 3
    assert len(queue.commands("sbatch")) == 1


def test_next_run_in_a_folder_is_another_one(launcher, job, lose, ran, tmp_path):
    run(lose(), "77", tmp_path)
    launcher.submit(job)
    assert launcher.submit(job).split(":")[1] == "1"
    assert not (job.folder / STATUS_FILE).exists()
    assert run((job.folder / SCRIPT_FILE).read_text(), "1", tmp_path) == 3
    assert ran() == ["77", "1"]


def test_another_process_finds_the_job_that_started_without_an_answer(make, job, lose, tmp_path):
    run(lose(), "77", tmp_path)
    (job.folder / ANSWER_FILE).touch()
    other = make()
    job_id = other.find_submitted(job.folder)
    assert other.poll([job_id])[job_id].exit_code == 3


@pytest.fixture
def unnamed(launcher, queue, job, tmp_path):
    """Submit with a command whose answer does not say which job it is; the job may start `before` it ends."""

    def unnamed(before: bool) -> str:
        def sbatch(argv, answer_file):
            script = (job.folder / SCRIPT_FILE).read_text()
            if before:
                run(script, "77", tmp_path)
            return Answer(0, "\x1b[32m5000 hours left\x1b[0m\n76\n77\n")

        queue._sbatch = sbatch
        return launcher.submit(job)

    return unnamed


def test_job_that_is_not_named_ends_when_it_starts(job, unnamed, ran, tmp_path):
    with pytest.raises(RefusedError, match=r"does not name one job.*5000 hours left") as caught:
        unnamed(before=False)
    assert caught.value.all_jobs
    assert run((job.folder / SCRIPT_FILE).read_text(), "77", tmp_path) != 0
    assert ran() == []


def test_job_that_is_not_named_is_followed_if_it_has_started(launcher, unnamed):
    job_id = unnamed(before=True)
    assert job_id.split(":")[1] == "77"
    assert launcher.poll([job_id])[job_id].exit_code == 3


@pytest.fixture
def twice(launcher, queue, clock, submit):
    """A job that ended at once, since another job of the same submission has claimed the folder."""
    job_id, folder = submit()
    (folder / ".autotune-claimed").write_text("2")
    start(folder)
    queue.states = {"1": "FAILED|NonZeroExitCode", "2": "RUNNING"}
    return job_id, folder


def test_job_has_not_ended_while_its_duplicate_runs(launcher, queue, clock, twice, look):
    job_id, folder = twice
    for _ in range(3):
        assert look(job_id).state is JobState.RUNNING
        clock.move(PATIENCE_S)
    end(folder, exit_code=4)
    assert look(job_id).exit_code == 4


def test_duplicate_may_end_without_a_status(queue, clock, twice, look):
    job_id, _ = twice
    look(job_id)
    queue.states["2"] = "NODE_FAIL|NodeDown"
    look(job_id)
    clock.move(PATIENCE_S)
    status = look(job_id)
    assert (status.state, "node" in status.message) == (JobState.LOST, True)


def test_cancel_ends_the_duplicate(launcher, queue, twice):
    job_id, _ = twice
    launcher.cancel(job_id)
    assert queue.states["2"] == "CANCELLED"
    assert launcher.poll([job_id])[job_id].reason is EndReason.CANCELLED


def test_python_of_the_site_runs_the_job(launcher, job):
    launcher.submit(job)
    assert f"exec {sys.executable} -I " in (job.folder / SCRIPT_FILE).read_text()
