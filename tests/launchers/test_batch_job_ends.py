"""How jobs of a scheduler ended, by their own files and by its reports, with one that only answers."""

import pytest

from launchers import EndReason, JobState
from launchers.batch import BatchLauncher
from launchers.batch.job_ends import GONE_FILE, status_without_file, waits_for_file
from launchers.batch_systems.base import QUEUE_LOG, JobReport
from launchers.batch_systems.slurm import SLURM
from launchers.site import Site
from launchers.supervisor import WALL_TIME_REACHED
from tests.launchers.answers import AWAY, PATIENCE_S, POLL_S, end, start


def test_queued_job_cancelled_by_others_is_cancelled(queue, submit, look):
    job_id, _ = submit()
    queue.states["1"] = "CANCELLED|Priority"
    status = look(job_id)
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.CANCELLED)
    assert "not by autotune" in status.message


@pytest.mark.parametrize("by_file", [("cancelled", 7), ("exited", -15), ("exited", 143)])
@pytest.mark.parametrize(
    "end_there",
    [
        ("CANCELLED", (JobState.ENDED, EndReason.CANCELLED)),
        ("TIMEOUT", (JobState.ENDED, EndReason.TIMED_OUT)),
        ("PREEMPTED", (JobState.LOST, EndReason.PREEMPTED)),
        ("NODE_FAIL", (JobState.LOST, None)),
    ],
)
def test_scheduler_reports_who_ended_a_job(queue, submit, look, by_file, end_there):
    state, expected = end_there
    job_id, folder = submit()
    end(folder, *by_file)
    queue.states["1"] = "COMPLETING"
    assert look(job_id).state is JobState.RUNNING
    queue.states["1"] = state
    status = look(job_id)
    assert (status.state, status.reason) == expected
    assert status.usage.elapsed_s == 2.0
    assert status.message


def test_signal_not_sent_by_the_scheduler_is_the_programs_own(queue, submit, look):
    job_id, folder = submit()
    end(folder, exit_code=-9)
    queue.states["1"] = "FAILED|NonZeroExitCode"
    status = look(job_id)
    assert (status.state, status.reason, status.exit_code) == (JobState.ENDED, EndReason.EXITED, -9)


def test_lack_of_memory_is_reported(queue, submit, look):
    job_id, folder = submit()
    end(folder, exit_code=-9)
    queue.states["1"] = "OUT_OF_MEMORY"
    assert "lack of memory" in look(job_id).message


@pytest.mark.parametrize(("state", "reason"), [("TIMEOUT", EndReason.TIMED_OUT), ("PREEMPTED", EndReason.PREEMPTED)])
def test_job_killed_without_a_reason_is_lost(queue, submit, look, state, reason):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = state
    assert look(job_id).reason is reason


def test_node_failure_loses_the_run(queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "NODE_FAIL|NodeDown"
    status = look(job_id)
    assert status.state is JobState.RUNNING  # its status may be on its way
    assert status.message == "a node of its job failed; waiting up to 1 min for its result file"
    clock.move(PATIENCE_S)
    status = look(job_id)
    assert (status.state, "node" in status.message) == (JobState.LOST, True)


def test_failed_node_is_waited_for_no_longer_than_the_file_system_delays(queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", poll_s=POLL_S), queue, clock, patience_s=180.0)
    queue.states["1"] = "NODE_FAIL|NodeDown"
    launcher.poll([job_id])
    clock.move(59.0)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    clock.move(1.0)
    assert launcher.poll([job_id])[job_id].state is JobState.LOST


@pytest.mark.parametrize(
    ("state", "says"), [("COMPLETED", "its job has ended"), (None, "the scheduler no longer knows its job")]
)
def test_status_file_that_is_late_is_reported(queue, submit, look, state, says):
    job_id, folder = submit()
    start(folder)
    if state is None:
        queue.states.clear()
    else:
        queue.states["1"] = state
    assert not look(job_id).message
    assert look(job_id).message == f"{says}; waiting up to 1 min for its result file"
    end(folder)
    assert not look(job_id).message


def test_killed_job_is_reported_as_killed():
    report = JobReport(JobState.ENDED, EndReason.EXITED, -9)
    assert waits_for_file(report, 180.0) == "its job was killed with SIGKILL; waiting up to 3 min for its result file"


def test_session_that_resumes_a_job_does_not_wait_anew(make, queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "COMPLETED"
    assert look(job_id).state is JobState.RUNNING
    number, since = (folder / GONE_FILE).read_text().split()
    (folder / GONE_FILE).write_text(f"{number} {float(since) - PATIENCE_S}")
    assert make().poll([job_id])[job_id].state is JobState.ENDED


def test_job_that_comes_back_after_a_session_was_killed_is_waited_for_in_full(make, queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states.clear()
    look(job_id)
    assert (folder / GONE_FILE).exists()
    queue.states["1"] = "RUNNING"
    assert make().poll([job_id])[job_id].state is JobState.RUNNING
    assert not (folder / GONE_FILE).exists()


def test_job_that_is_queued_again_has_not_ended(queue, submit, look):
    job_id, folder = submit()
    end(folder, "cancelled", -15)
    queue.states["1"] = "PENDING|BeginTime"
    assert look(job_id).state in {JobState.QUEUED, JobState.RUNNING}
    queue.states["1"] = "COMPLETED"
    end(folder)
    assert look(job_id).exit_code == 0


def test_status_file_decides_the_end_of_a_forgotten_job(queue, submit, look):
    job_id, folder = submit()
    queue.states.clear()
    end(folder, exit_code=5)
    assert look(job_id).exit_code == 5


@pytest.mark.parametrize(
    ("by_file", "expected"),
    [
        (("cancelled", -15, ""), (JobState.LOST, EndReason.PREEMPTED)),
        (("cancelled", -15, f"{WALL_TIME_REACHED}; the disk is full"), (JobState.ENDED, EndReason.TIMED_OUT)),
        (("cancelled", -15, "the kernel killed processes for lack of memory"), (JobState.ENDED, EndReason.EXITED)),
        # Only the program was killed, so it was not the batch system.
        (("exited", -15, ""), (JobState.ENDED, EndReason.EXITED)),
    ],
)
def test_job_that_was_told_to_end_is_not_lost_without_a_report(queue, submit, look, by_file, expected):
    job_id, folder = submit()
    end(folder, *by_file)
    queue.states.clear()
    status = look(job_id)
    assert (status.state, status.reason, status.usage.elapsed_s) == (*expected, 2.0)


def test_forgotten_job_without_a_status_is_lost_after_the_patience(launcher, queue, clock, submit, look):
    job_id, _ = submit()
    queue.states.clear()
    assert look(job_id).state is JobState.RUNNING
    clock.move(PATIENCE_S - POLL_S - 1)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    clock.move(POLL_S + 1)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING  # it is deleted despite the answer
    status = look(job_id)
    assert (status.state, "knows nothing of job 1" in status.message) == (JobState.LOST, True)


def test_job_is_given_up_when_the_patience_is_over(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.states.clear()
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING  # when the clock begins
    for _ in range(2):
        clock.move(PATIENCE_S / 2)
        launcher.poll([job_id])
    # The job is deleted by now; the next answer suffices.
    clock.move(0.1)
    assert launcher.poll([job_id])[job_id].state is JobState.LOST


def test_job_is_deleted_and_confirmed_gone_before_it_is_given_up(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.states.clear()
    launcher.poll([job_id])
    clock.move(PATIENCE_S)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    assert queue.asked[-1] == ["scancel", "1"]
    # The job was running all the time and is reported again: no second one may start.
    queue.states["1"] = "COMPLETING"
    clock.move(PATIENCE_S)
    assert launcher.poll([job_id])[job_id].state in {JobState.QUEUED, JobState.RUNNING}
    queue.states["1"] = "CANCELLED"
    clock.move(POLL_S)
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.reason) == (JobState.LOST, None)
    assert "knows nothing of job 1" in status.message


def test_job_is_not_given_up_while_it_cannot_be_deleted(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.states.clear()
    launcher.poll([job_id])
    queue.missing = "scancel"
    for _ in range(5):
        clock.move(PATIENCE_S)
        assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    queue.missing = ""
    launcher.poll([job_id])
    clock.move(POLL_S)
    assert launcher.poll([job_id])[job_id].state is JobState.LOST


def test_job_that_comes_back_is_waited_for_again(launcher, queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states.clear()
    assert look(job_id).state is JobState.RUNNING
    queue.states["1"] = "RUNNING"
    assert look(job_id).state is JobState.RUNNING
    queue.states.clear()
    clock.move(10 * PATIENCE_S)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING


def test_status_may_appear_late(launcher, queue, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "COMPLETED"
    assert look(job_id).state is JobState.RUNNING
    end(folder, exit_code=0)
    assert launcher.poll([job_id])[job_id].reason is EndReason.EXITED


def test_script_that_ended_early_is_quoted(queue, clock, submit, look):
    job_id, folder = submit()
    (folder / QUEUE_LOG).write_text("Lmod has detected the following error:\n  no module 'qe/7.0'\n")
    queue.states["1"] = "FAILED|NonZeroExitCode"
    look(job_id)
    clock.move(PATIENCE_S)
    status = look(job_id)
    assert status.reason is EndReason.NOT_STARTED
    assert "no module 'qe/7.0'" in status.message


@pytest.mark.parametrize("by_file", [("exited", 0), ("exited", 1), ("timed out", -15)])
def test_suspended_run_is_lost(queue, submit, look, by_file):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "SUSPENDED"
    assert look(job_id).state is JobState.RUNNING
    queue.states["1"] = "RUNNING"
    assert look(job_id).state is JobState.RUNNING
    queue.states["1"] = "COMPLETED"
    end(folder, *by_file)
    status = look(job_id)
    assert (status.state, status.reason) == (JobState.LOST, EndReason.PREEMPTED)
    assert status.message == "was suspended for a while"
    assert look(job_id) == status


def test_suspended_run_that_was_cancelled_is_cancelled(launcher, queue, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "SUSPENDED"
    look(job_id)
    launcher.end([job_id])
    end(folder, "cancelled", -15)
    assert look(job_id).reason is EndReason.CANCELLED


def test_job_whose_end_is_written_during_a_query_after_its_cancellation_is_cancelled(
    launcher, queue, submit, look, monkeypatch
):
    job_id, folder = submit()
    start(folder)
    launcher.end([job_id])
    queue.states.clear()
    query = launcher._query_states

    def written_meanwhile(numbers):
        end(folder, "cancelled", -15)
        return query(numbers)

    monkeypatch.setattr(launcher, "_query_states", written_meanwhile)
    assert look(job_id).reason is EndReason.CANCELLED


def test_one_empty_answer_loses_no_job(launcher, queue, clock, submit, look):
    job_id, folder = submit()
    start(folder)
    queue.states["1"] = "RUNNING"
    look(job_id)
    queue.states.clear()
    assert look(job_id).state is JobState.RUNNING
    # The scheduler is absent for a long time, and then answers as before.
    queue.trouble = AWAY
    for _ in range(20):
        clock.move(PATIENCE_S)
        assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    queue.trouble = None
    queue.states["1"] = "RUNNING"
    clock.move(10 * PATIENCE_S)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    queue.states.clear()
    assert look(job_id).state is JobState.RUNNING
    clock.move(PATIENCE_S)
    assert look(job_id).state is JobState.RUNNING
    assert look(job_id).state is JobState.LOST


def test_log_excerpt_begins_at_the_error(tmp_path):
    said = 'Lmod has detected the following error: The following module(s) are unknown:\n"qe/9"\n\n'
    (tmp_path / QUEUE_LOG).write_text("loading\n" + said + 9 * "Please check the spelling\n" + "#%Module\n")
    message = status_without_file(JobReport(JobState.ENDED), tmp_path).message
    assert message.startswith("the job script ended early: Lmod has detected the following error")
    assert '"qe/9"' in message
    (tmp_path / QUEUE_LOG).write_text("first\nthe last word")
    assert status_without_file(JobReport(JobState.ENDED), tmp_path).message.endswith("first the last word")
