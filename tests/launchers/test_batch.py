"""Submitting, querying and cancelling jobs of a scheduler that only answers."""

import errno
import json
import os
import re
from itertools import pairwise
from pathlib import Path

import pytest

from launchers import EndReason, Job, JobState, LaunchError, Resources
from launchers.batch import BatchLauncher, QueueFullError
from launchers.batch.commands import Answer, not_started_answer, run_command
from launchers.batch.job_files import ANSWER_FILE
from launchers.batch_systems.slurm import SLURM
from launchers.local import LocalLauncher
from launchers.node import CLAIM_FILE, JOB_FILE
from launchers.site import Site
from tests.launchers.answers import AWAY, PATIENCE_S, POLL_S, end, start


def test_one_query_serves_many_jobs(launcher, queue, submit):
    ids = [submit(str(number))[0] for number in range(100)]
    assert {status.state for status in launcher.poll(ids).values()} == {JobState.QUEUED}
    assert [argv[-1] for argv in queue.commands("squeue")] == ["--jobs=" + ",".join(map(str, range(1, 101)))]


def test_node_meters_are_skipped_for_a_job_on_several_nodes(queue, clock, tmp_path):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm", cores_per_node=4, nodes=2), queue, clock, PATIENCE_S)
    launcher.submit(Job(("true",), tmp_path, resources=Resources(cores=8)))
    assert json.loads((tmp_path / JOB_FILE).read_text())["nodes"] == 2


def test_scheduler_is_queried_at_most_every_poll_s(launcher, queue, clock, submit):
    job_id, _ = submit()
    for _ in range(1000):
        clock.move(0.1)
        launcher.poll([job_id])
    assert len(queue.commands("squeue")) == 4  # 100 s


def test_ending_no_jobs_causes_no_query(launcher, queue, clock, submit):
    job_id, _ = submit()
    for _ in range(19):
        launcher.poll([job_id])
        launcher.end([])
        clock.move(POLL_S / 10)
    assert len(queue.commands("squeue")) == 2
    launcher.end([job_id])
    launcher.poll([job_id])
    assert len(queue.commands("squeue")) == 3


@pytest.mark.parametrize("state", ["COMPLETED", "TIMEOUT", "CANCELLED"])
def test_job_that_ends_during_a_query_keeps_its_usage(launcher, queue, submit, state):
    job_id, folder = submit()
    queue.states["1"] = state
    queue.before_squeue = lambda: end(folder)
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.usage.elapsed_s) == (JobState.ENDED, 2.0)


def test_forgotten_job_is_read_again_from_its_files(launcher, queue, submit):
    job_id, folder = submit()
    end(folder)
    first = launcher.poll([job_id])
    launcher.forget([job_id, job_id])
    assert launcher.poll([job_id]) == first
    assert first[job_id].reason is EndReason.EXITED
    assert queue.commands("squeue") == []


def test_end_is_read_from_the_jobs_own_file_at_once(launcher, queue, submit):
    job_id, folder = submit()
    launcher.poll([job_id])
    queue.states["1"] = "RUNNING"
    end(folder, exit_code=3)
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.reason, status.exit_code) == (JobState.ENDED, EndReason.EXITED, 3)
    assert status.usage.elapsed_s == 2.0
    assert len(queue.commands("squeue")) == 1


@pytest.mark.parametrize(
    ("walltime_s", "limit_s", "asked"),
    [(None, None, "01:00:00"), (60.0, None, "00:03:00"), (60.0, 10.0, "00:03:00"), (float("inf"), None, "01:00:00")],
)
def test_wall_time_is_what_suffices_and_a_margin(launcher, tmp_path, walltime_s, limit_s, asked):
    job = Job(("true",), tmp_path, time_limit_s=limit_s, walltime_s=walltime_s)
    assert f"#SBATCH --time={asked}\n" in launcher.script(job)


def test_gpu_numbers_follow_the_pci_bus(launcher, tmp_path):
    jobs = [Job(("train",), tmp_path, resources=Resources(gpus=gpus)) for gpus in (1, 0)]
    for shown in (launcher.preview, LocalLauncher().preview):
        assert ["CUDA_DEVICE_ORDER=PCI_BUS_ID" in shown(job) for job in jobs] == [True, False]


def test_reason_for_waiting_is_reported(launcher, queue, submit):
    job_id, _ = submit()
    queue.states["1"] = "PENDING|Nodes required for job are DOWN, DRAINED or reserved"
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.message) == (
        JobState.QUEUED,
        "Nodes required for job are DOWN, DRAINED or reserved",
    )


def test_job_runs_as_soon_as_it_has_output(launcher, submit):
    job_id, folder = submit()
    start(folder)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING


def test_queries_of_an_absent_scheduler_become_rare(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.trouble = AWAY
    asked_at: list[float] = []
    while len(asked_at) < 8:
        before = len(queue.asked)
        assert launcher.poll([job_id])[job_id].state is not JobState.LOST
        if len(queue.asked) > before:
            asked_at.append(clock.now_s)
        clock.move(1.0)
    gaps = [after - before for before, after in pairwise(asked_at)]
    assert gaps == [60, 120, 240, 480, 600, 600, 600]
    assert "Unable to contact slurm controller" in launcher.trouble


def test_queries_return_to_their_pace_when_the_scheduler_is_back(launcher, queue, clock, submit):
    job_id, folder = submit()
    start(folder)
    queue.trouble = AWAY
    launcher.poll([job_id])
    queue.trouble = None
    queue.states["1"] = "RUNNING"
    clock.move(2 * POLL_S)
    assert launcher.poll([job_id])[job_id].state is JobState.RUNNING
    assert launcher.trouble == ""
    asked = len(queue.asked)
    clock.move(POLL_S)
    launcher.poll([job_id])
    assert len(queue.asked) == asked + 1


@pytest.mark.parametrize(
    "trouble", [AWAY, Answer(124), Answer(127), Answer(1), Answer(2, stderr="squeue: fatal: what?")]
)
def test_no_job_is_lost_while_the_scheduler_is_absent(launcher, queue, clock, submit, trouble):
    job_id, _ = submit()
    launcher.poll([job_id])
    queue.trouble = trouble
    clock.move(100 * PATIENCE_S)
    for _ in range(3):
        clock.move(10 * PATIENCE_S)
        assert launcher.poll([job_id])[job_id].state is JobState.QUEUED


def test_lack_of_descriptors_is_given_up_but_not_an_absent_scheduler(launcher, queue, clock, submit):
    job_id, _ = submit()

    def poll_for_long(error):
        queue.trouble = not_started_answer(["squeue"], OSError(error, os.strerror(error)))
        for _ in range(20):
            clock.move(300.0)
            assert launcher.poll([job_id])[job_id].state is JobState.QUEUED

    poll_for_long(errno.ENOENT)
    queue.trouble = None
    clock.move(600.0)
    launcher.poll([job_id])
    assert launcher.trouble == ""
    with pytest.raises(OSError, match=r"for 15 minutes.*squeue: Too many open files.*jobs keep running") as caught:
        poll_for_long(errno.EMFILE)
    assert "\n" not in str(caught.value)


def test_cancelling_a_job_that_waits(launcher, queue, submit):
    job_id, _ = submit()
    launcher.cancel(job_id)
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.reason, status.message) == (JobState.ENDED, EndReason.CANCELLED, "")
    assert queue.commands("scancel") == [["scancel", "1"]]


def test_cancelling_a_job_that_the_scheduler_forgets_at_once(launcher, queue, submit):
    job_id, _ = submit()
    launcher.poll([job_id])
    queue.states.clear()
    launcher.cancel(job_id)
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.reason) == (JobState.ENDED, EndReason.CANCELLED)


def test_cancel_is_repeated_after_an_absent_scheduler_returns(launcher, queue, clock, submit, monkeypatch):
    job_id, _ = submit()
    queue.trouble = AWAY

    def sleep(seconds: float) -> None:
        clock.move(seconds)
        if clock.now_s > 20:
            queue.trouble = None

    monkeypatch.setattr("time.sleep", sleep)
    launcher.cancel(job_id)
    assert launcher.poll([job_id])[job_id].reason is EndReason.CANCELLED
    assert queue.states["1"] == "CANCELLED"


def test_cancel_all_gives_up_on_an_absent_scheduler(launcher, queue, clock, submit):
    ids = [submit(name)[0] for name in ("one", "two")]
    queue.trouble = AWAY
    left = launcher.cancel_all(ids, 5.0)
    assert {status.state for status in left.values()} <= {JobState.QUEUED, JobState.RUNNING}
    assert "Unable to contact" in launcher.trouble
    assert clock.now_s < 20
    queue.trouble = None
    clock.move(60.0)
    launcher.cancel_all(ids, 5.0)
    assert len({tuple(command) for command in queue.commands("scancel")}) == 1
    assert [status.reason for status in launcher.poll(ids).values()] == [EndReason.CANCELLED] * 2


def test_cancel_raises_if_the_job_does_not_end(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.cancelled_state = None
    with pytest.raises(LaunchError, match="job 1 could not be cancelled within 120 s"):
        launcher.cancel(job_id)
    assert clock.now_s < 200


def test_many_jobs_are_ended_with_one_command(launcher, queue, submit):
    ids = [submit(str(number))[0] for number in range(5)]
    launcher.end(ids)
    assert queue.commands("scancel") == [["scancel", "1", "2", "3", "4", "5"]]


def test_failed_cancel_is_reported_and_repeated(launcher, queue, clock, submit):
    ids = [submit(str(number))[0] for number in range(2)]
    queue.trouble = Answer(1, stderr="scancel: error: Kill job error on job id 1: Unable to contact slurm controller")
    launcher.end(ids)
    queue.trouble = None
    assert {status.state for status in launcher.poll(ids).values()} == {JobState.QUEUED}
    assert "Kill job error" in launcher.trouble
    clock.move(POLL_S)
    launcher.poll(ids)
    assert launcher.trouble == ""
    assert set(queue.states.values()) == {"CANCELLED"}
    clock.move(POLL_S)
    launcher.poll(ids)
    assert len(queue.commands("scancel")) == 2


def test_ending_an_ended_job_is_no_trouble(launcher, queue, submit):
    job_id, _ = submit()
    queue.trouble = Answer(
        1, stderr="scancel: error: Kill job error on job id 1: Job/step already completing or completed"
    )
    launcher.end([job_id])
    assert launcher.trouble == ""


def test_missing_cancel_command_is_reported_at_once(launcher, queue, clock, submit):
    job_id, _ = submit()
    queue.missing = "scancel"
    with pytest.raises(LaunchError, match=r"job 1 could not be cancelled: scancel: No such file"):
        launcher.cancel(job_id)
    assert clock.now_s < 1.0


def test_cancel_all_reports_the_end_of_each_job(launcher, queue, submit):
    ids = [submit(str(number))[0] for number in range(3)]
    queue.immortal = "2"
    statuses = launcher.cancel_all(ids)
    assert [statuses[job_id].state for job_id in ids] == [JobState.ENDED, JobState.QUEUED, JobState.ENDED]
    assert queue.commands("scancel")[0] == ["scancel", "1", "2", "3"]
    assert all(argv == ["scancel", "2"] for argv in queue.commands("scancel")[1:])


def test_full_queue_raises_queue_full(launcher, queue, submit):
    queue.refusal = Answer(
        1, stderr="sbatch: error: AssocMaxSubmitJobLimit\nsbatch: error: Batch job submission failed"
    )
    with pytest.raises(QueueFullError, match="AssocMaxSubmitJobLimit"):
        submit()


def test_refusal_quotes_the_scheduler(launcher, queue, submit):
    queue.refusal = Answer(1, stderr="sbatch: error: Batch job submission failed: Invalid partition name specified")
    with pytest.raises(LaunchError, match=r"sbatch does not take the job: .*Invalid partition") as caught:
        submit()
    assert not isinstance(caught.value, QueueFullError)


def test_missing_submit_command_is_reported(clock, tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm"), run_command, clock)
    # A session begins only where there is one.
    with pytest.raises(QueueFullError, match="sbatch: No such file"):
        launcher.submit(Job(("true",), tmp_path))


def test_id_is_known_after_a_kill_between_submission_and_storing(launcher, queue, tmp_path, monkeypatch):
    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(BatchLauncher, "_id", killed)
    with pytest.raises(KeyboardInterrupt):
        launcher.submit(Job(("true",), tmp_path))
    monkeypatch.undo()
    job_id = launcher.find_submitted(tmp_path)
    assert launcher.poll([job_id])[job_id].state is JobState.QUEUED


def test_answer_of_an_earlier_submission_is_not_reused(launcher, queue, tmp_path):
    launcher.submit(Job(("true",), tmp_path))
    queue.refusal = Answer(1, stderr="no")
    with pytest.raises(LaunchError):
        launcher.submit(Job(("true",), tmp_path))
    assert launcher.find_submitted(tmp_path) is None
    assert launcher.find_submitted(tmp_path / "missing") is None


def test_submission_that_printed_its_number_before_the_timeout_counts(clock, tmp_path):
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm"), lambda *_: Answer(124, "17\n"), clock)
    assert launcher.submit(Job(("true",), tmp_path)).split(":")[1] == "17"


def test_killed_submission_is_searched_for_before_it_is_repeated(clock, tmp_path):
    """This is not an attempt of the run: the job was not refused and may be running by then."""
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm"), lambda *_: Answer(-9, stderr="Killed"), clock)
    with pytest.raises(QueueFullError):
        launcher.submit(Job(("true",), tmp_path))
    (tmp_path / CLAIM_FILE).write_text("17")
    assert launcher.submit(Job(("true",), tmp_path)).split(":")[1] == "17"


def test_ids_hold_with_special_characters_in_folders(launcher, make, queue, tmp_path, monkeypatch):
    (tmp_path / "a:b\nc").mkdir()
    monkeypatch.chdir(tmp_path)
    job_id = launcher.submit(Job(("true",), Path("a:b\nc")))
    assert job_id == launcher.find_submitted(Path("a:b\nc"))
    monkeypatch.chdir("/")
    end(tmp_path / "a:b\nc", exit_code=4)
    assert make().poll([job_id])[job_id].exit_code == 4


def test_id_of_another_scheduler_is_refused(launcher):
    with pytest.raises(ValueError, match="is not the id of a job of slurm"):
        launcher.poll(["pbs:7.host:/there"])


def test_two_processes_see_the_same(make, queue, submit, look):
    job_id, folder = submit()
    other = make()
    assert other.poll([job_id])[job_id].state is JobState.QUEUED
    other.cancel(job_id)
    assert look(job_id).reason is EndReason.CANCELLED
    end(folder, "cancelled", -15)
    assert make().poll([job_id])[job_id].reason is EndReason.CANCELLED


def test_preview_shows_what_is_submitted(launcher, tmp_path):
    shown = launcher.preview(Job(("pw.x", "-npool", "2"), tmp_path, environment={"OMP_NUM_THREADS": "2"}))
    assert "#SBATCH --ntasks=1" in shown
    assert re.search(r"^# runs: env .*OMP_NUM_THREADS=2 .*pw.x -npool 2$", shown, re.MULTILINE)
    assert not (tmp_path / ANSWER_FILE).exists()
