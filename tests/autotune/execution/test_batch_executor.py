"""The executor of batch systems, with a queue that is on paper."""

from dataclasses import replace
from pathlib import Path

import pytest

from autotune.errors import StorageError
from autotune.execution.batch_executor import BatchExecutor
from autotune.execution.capping import Cap
from autotune.execution.task import CUT_SHORT, NO_PLACE, PREEMPTED, REFUSED, REFUSED_ALL, Task
from launchers import STDOUT, EndReason, Job, JobState, JobStatus, LaunchError, Place, Resources, Usage
from launchers.batch import NoRoomError, QueueFullError, RefusedError
from launchers.site import Site
from objectives.base import FailureKind, Measurement, Progress
from objectives.ending import check_ending
from tests.support.fakes import SECONDS, PaperObjective

QUEUED, RUNNING = JobStatus(JobState.QUEUED), JobStatus(JobState.RUNNING)
DONE = JobStatus(JobState.ENDED, EndReason.EXITED, 0, Usage(7.0, 14.0))


class Steps(PaperObjective):
    """Prints a line a step, and its time in the last one."""

    def progress_reader(self):
        return lambda line: Progress(int(line)) if line.isdigit() else None

    def measure(self, output):
        assert output.status == DONE
        return Measurement({SECONDS.name: float(output.stdout.split()[-1])})


class Judged(Steps):
    """Says how the job ended."""

    def measure(self, output):
        check_ending(output)
        return Measurement({SECONDS.name: 1.0})


class PaperQueue:
    """Takes jobs and says of them what a test wrote down; refuses to be asked about others."""

    def __init__(self) -> None:
        self.site = Site("paper", max_jobs=2000)
        self.says: dict[str, JobStatus] = {}
        self.jobs: list[Job] = []
        self.ended: list[str] = []
        self.trouble = ""
        self.full = 0
        self.refuses: LaunchError | None = None
        self.most_cores = 1000
        self.polls = 0

    def submit(self, job: Job) -> str:
        if self.full:
            self.full -= 1
            msg = "no room"
            raise QueueFullError(msg)
        if self.refuses:
            raise self.refuses
        if job.resources.cores > self.most_cores:
            msg = "would exceed per-user limit on resource ncpus"
            raise NoRoomError(msg)
        self.jobs.append(job)
        self.says[f"paper:{job.name}"] = QUEUED
        return f"paper:{job.name}"

    def poll(self, ids):
        self.polls += 1
        return {job_id: self.says[job_id] for job_id in ids}

    def end(self, ids) -> None:
        self.ended += list(ids)

    def forget(self, ids) -> None:
        for job_id in ids:
            del self.says[job_id]


class Clock:
    """Time that passes when somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, duration_s: float) -> None:
        assert duration_s > 0.0
        self.now += duration_s


@pytest.fixture
def queue():
    return PaperQueue()


@pytest.fixture
def notes():
    return []


@pytest.fixture
def said():
    return []


@pytest.fixture
def executor(queue, notes, said):
    clock = Clock()
    return BatchExecutor(queue, lambda *note: notes.append(note) is None, said.append, clock, clock.sleep)


def task(folder: Path, number: int = 0, **changes: object) -> Task:
    place = folder / str(number)
    place.mkdir()
    return Task(number, Job(("program",), place, name=f"{number:05d}"), Steps(), **changes)


def prints(folder: Path, text: str, number: int = 0) -> None:
    (folder / str(number) / STDOUT).write_text(text)


def test_a_job_is_noted_when_it_is_submitted_and_measured_when_it_has_ended(executor, queue, notes, tmp_path):
    executor.submit(task(tmp_path))
    assert notes == [("00000", "paper:00000")]
    assert executor.wait(1.0) == []
    queue.says["paper:00000"] = RUNNING
    prints(tmp_path, "1\n2\n")
    assert executor.wait(1.0) == []
    prints(tmp_path, "1\n2\n3\n7.5\n")
    queue.says["paper:00000"] = DONE
    ((ended, outcome),) = executor.wait(1.0)
    assert (ended.key, outcome.metrics, outcome.usage) == (0, {"wall_s": 7.5}, DONE.usage)
    assert [step for step, _ in outcome.timeline] == [1, 2, 3]
    assert executor.wait(1.0) == []


def test_why_jobs_wait_is_said_when_it_changes_and_told_of_each_run(executor, queue, said, tmp_path):
    for number in range(3):
        executor.submit(task(tmp_path, number))
    full, held = JobStatus(JobState.QUEUED, message="no free nodes"), JobStatus(JobState.QUEUED, message="is held")
    queue.says.update({"paper:00000": full, "paper:00001": full})
    for _ in range(3):
        executor.wait(60.0)
    assert said == ["the job of run 00000 and 1 more waits: no free nodes"]
    reasons = [executor.why_waits(f"{number:05d}") for number in range(3)]
    assert reasons == ["no free nodes", "no free nodes", "its job is in the queue"]
    queue.says["paper:00000"] = RUNNING
    executor.wait(1.0)
    queue.says["paper:00001"] = held
    executor.wait(1.0)
    assert said[1:] == ["the job of run 00001 waits: is held"]
    assert executor.why_waits("00000") == ""
    queue.full = 1
    executor.submit(task(tmp_path, 3))
    assert executor.why_waits("00003") == "its job is not submitted yet"


def test_a_result_file_that_is_late_is_told_at_once(executor, queue, said, tmp_path):
    executor.submit(task(tmp_path))
    queue.says["paper:00000"] = JobStatus(JobState.RUNNING, message="its node failed; waiting up to 1 min")
    executor.wait(1.0)
    executor.wait(1.0)
    assert said == ["the job of run 00000: its node failed; waiting up to 1 min"]
    assert executor.why_waits("00000") == "its node failed; waiting up to 1 min"


def test_a_job_whose_note_the_storage_does_not_take_is_not_submitted_twice(queue, tmp_path):
    def away(*_):
        msg = "the storage is away"
        raise StorageError(msg)

    clock = Clock()
    executor = BatchExecutor(queue, away, print, clock, clock.sleep)
    one = task(tmp_path)
    with pytest.raises(StorageError):
        executor.submit(one)
    # Ended runs are kept, so that they can be stored later.
    assert executor.wait(0.0) == []
    assert [job.name for job in queue.jobs] == ["00000"]


def test_one_look_at_the_queue_is_enough_for_all_jobs(executor, queue, tmp_path):
    for number in range(50):
        executor.submit(task(tmp_path, number))
    executor.wait(0.0)
    assert queue.polls == 1


def test_the_more_jobs_the_less_often_their_files_are_looked_at(executor, queue, tmp_path):
    for number in range(1000):
        executor.submit(task(tmp_path, number))
    for _ in range(20):
        executor.wait(0.25)
    assert queue.polls == 6  # at once, and every second
    queue.says["paper:00999"] = DONE
    prints(tmp_path, "2.0\n", 999)
    ended = [one for _ in range(5) for one in executor.wait(0.25)]
    assert [one.key for one, _ in ended] == [999]


def test_what_ends_at_the_same_time_is_told_at_once(executor, queue, tmp_path):
    for number in range(5):
        executor.submit(task(tmp_path, number))
        prints(tmp_path, "1.0\n", number)
        queue.says[f"paper:{number:05d}"] = DONE
    assert sorted(task.key for task, _ in executor.wait(1.0)) == [0, 1, 2, 3, 4]


def test_when_lines_came_that_were_read_after_the_end_is_not_known(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    prints(tmp_path, "1\n2\n3.0\n")
    queue.says["paper:00000"] = DONE
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.complete, outcome.timeline) == (True, ())


def test_nor_is_it_of_a_job_that_has_ended_and_whose_energy_is_not_booked_yet(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    prints(tmp_path, "1\n2\n3.0\n")
    queue.says["paper:00000"] = replace(RUNNING, is_accounted=False)
    assert executor.wait(1.0) == []
    queue.says["paper:00000"] = DONE
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.complete, outcome.timeline) == (True, ())


def test_a_full_queue_is_waited_for(executor, queue, said, tmp_path):
    queue.full = 2
    executor.submit(task(tmp_path))
    executor.submit(task(tmp_path, 1))
    assert executor.wait(100.0) == []
    assert [job.name for job in queue.jobs] == ["00000", "00001"]
    assert said == ["no room; tried again every 30 s"]


def test_room_that_an_end_makes_is_used_at_once(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    queue.full = 1
    executor.submit(task(tmp_path, 1))
    assert executor.wait(1.0) == []
    queue.says["paper:00000"] = DONE
    prints(tmp_path, "1.0\n")
    assert len(executor.wait(1.0)) == 1
    executor.wait(0.0)
    assert [job.name for job in queue.jobs] == ["00000", "00001"]


def test_a_scheduler_that_takes_nothing_and_tells_nothing_says_each_once(executor, queue, said, tmp_path):
    executor.submit(task(tmp_path))
    queue.trouble, queue.full = "cannot connect to server", 10
    executor.submit(task(tmp_path, 1))
    executor.wait(200.0)
    assert len(said) == 2
    assert sum("cannot connect to server" in line for line in said) == 1
    # Much later it is news again.
    queue.trouble, queue.full = "", 0
    executor.wait(1000.0)
    queue.trouble = "cannot connect to server"
    executor.wait(1.0)
    assert len(said) == 3


def test_an_outage_is_reported_once_for_all_jobs(executor, queue, said, tmp_path):
    for number in range(3):
        executor.submit(task(tmp_path, number))
    queue.trouble = "cannot connect to server"
    executor.wait(1.0)
    executor.submit(task(tmp_path, 3))
    executor.wait(1.0)
    assert said == ["the scheduler does not answer: cannot connect to server (3 jobs); jobs continue meanwhile"]


def test_no_more_jobs_are_in_the_queue_than_the_site_allows(executor, queue, said, tmp_path):
    queue.site = Site("paper", max_jobs=60)
    for number in range(70):
        executor.submit(task(tmp_path, number))
    assert len(queue.jobs) == 60
    assert said == ["60 jobs are in the queue: max_jobs in the site file allows no more at a time"]
    queue.says["paper:00000"] = DONE
    prints(tmp_path, "1.0\n")
    executor.wait(1.0)
    executor.wait(1.0)
    assert len(queue.jobs) == 61


def test_no_more_jobs_are_submitted_in_a_minute_than_the_site_allows(executor, queue, tmp_path):
    queue.site = Site("paper", submissions_per_minute=6)
    for number in range(20):
        executor.submit(task(tmp_path, number))
    assert len(queue.jobs) == 1
    executor.wait(59.0)
    assert len(queue.jobs) == 6
    # One that ends makes room in the queue, not in the minute.
    queue.says["paper:00000"] = DONE
    prints(tmp_path, "1.0\n")
    assert len(executor.wait(0.5)) == 1
    executor.wait(0.0)
    assert len(queue.jobs) <= 7


@pytest.fixture
def end_after(executor, queue, tmp_path):
    def end_after(waited_s: float, number: int) -> None:
        """Let a run of 7 s end after it has waited."""
        executor.submit(task(tmp_path, number))
        executor.wait(waited_s + DONE.usage.elapsed_s)
        prints(tmp_path, "7.0\n", number)
        queue.says[f"paper:{number:05d}"] = DONE
        while not executor.wait(1.0):
            pass

    return end_after


@pytest.mark.parametrize(("waited_s", "lines"), [(2.0, 0), (60.0, 1)])
def test_a_pilot_is_advised_once_if_runs_are_shorter_than_their_wait(end_after, said, waited_s, lines):
    for number in range(8):
        assert not said or number >= 3
        end_after(waited_s, number)
    pilot = "runs take 7 s and wait 60 s in the queue: `autotune pilot` makes them in one job"
    assert said == [pilot] * lines


def test_a_job_that_is_refused_is_a_failure_of_the_machine(executor, queue, tmp_path):
    queue.refuses = LaunchError("hook error")
    executor.submit(task(tmp_path))
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.failure, outcome.message) == (FailureKind.INFRASTRUCTURE_ERROR, "hook error")
    assert outcome.code == "not-started"


@pytest.mark.parametrize(("all_jobs", "code"), [(False, REFUSED), (True, REFUSED_ALL)])
def test_a_refusal_that_will_not_change_is_told_as_one(executor, queue, tmp_path, all_jobs, code):
    queue.refuses = RefusedError("unknown queue", all_jobs=all_jobs)
    executor.submit(task(tmp_path))
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.failure, outcome.code) == (FailureKind.INFRASTRUCTURE_ERROR, code)


def of_cores(task: Task, cores: int) -> Task:
    return replace(task, job=replace(task.job, resources=Resources(cores=cores)))


def test_a_run_that_a_limit_has_no_room_for_lets_smaller_ones_go_first(executor, queue, said, tmp_path):
    queue.most_cores = 2
    executor.submit(of_cores(task(tmp_path), 1))
    executor.submit(of_cores(task(tmp_path, 1), 4))
    executor.submit(of_cores(task(tmp_path, 2), 2))
    assert executor.wait(60.0) == []
    assert [job.name for job in queue.jobs] == ["00000", "00002"]
    assert len([text for text in said if "limit on resource" in text]) == 1
    # There is room when others have ended.
    queue.most_cores = 4
    queue.says["paper:00000"] = DONE
    prints(tmp_path, "1.0\n")
    assert len(executor.wait(60.0)) == 1
    executor.wait(0.0)
    assert [job.name for job in queue.jobs] == ["00000", "00002", "00001"]


def test_a_run_that_is_larger_than_a_limit_itself_is_not_waited_for(executor, queue, tmp_path):
    queue.most_cores = 1
    executor.submit(of_cores(task(tmp_path), 4))
    executor.submit(of_cores(task(tmp_path, 1), 1))
    ((ended, outcome),) = executor.wait(1.0)
    assert (ended.key, outcome.code) == (0, REFUSED)
    assert "this job alone exceeds the limit" in outcome.message
    assert [job.name for job in queue.jobs] == ["00001"]


def test_a_job_that_can_never_run_is_deleted_after_a_while(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    never = JobStatus(JobState.QUEUED, message="Can Never Run: ncpus", never_starts=True)
    queue.says["paper:00000"] = never
    assert executor.wait(200.0) == []
    # Nodes came back for a moment.
    queue.says["paper:00000"] = QUEUED
    executor.wait(1.0)
    queue.says["paper:00000"] = never
    assert executor.wait(200.0) == []
    ((_, outcome),) = executor.wait(200.0)
    assert (outcome.code, queue.ended) == (REFUSED, ["paper:00000"])
    assert "Can Never Run: ncpus" in outcome.message


def test_a_preempted_job_is_nobodys_fault(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    queue.says["paper:00000"] = JobStatus(JobState.LOST, EndReason.PREEMPTED, message="was preempted by another job")
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.retryable, outcome.code) == (True, PREEMPTED)


def test_the_cap_is_the_time_limit_of_the_job(executor, queue, tmp_path):
    executor.submit(task(tmp_path, cap=Cap(SECONDS, 5.0, 6.0)))
    assert queue.jobs[0].time_limit_s == 6.0
    queue.says["paper:00000"] = JobStatus(JobState.ENDED, EndReason.TIMED_OUT, usage=Usage(6.0))
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.capped, outcome.bound) == (True, 5.0)


@pytest.mark.parametrize(
    ("status", "limit_s"),
    [
        # The batch system says why it ended the job, or it does not.
        (JobStatus(JobState.ENDED, EndReason.TIMED_OUT, usage=Usage(170.0)), None),
        (JobStatus(JobState.ENDED, EndReason.TIMED_OUT), None),
        (JobStatus(JobState.ENDED, EndReason.CANCELLED, usage=Usage(170.0)), None),
        (JobStatus(JobState.ENDED, EndReason.EXITED, -15, Usage(170.0)), None),
        (JobStatus(JobState.ENDED, EndReason.TIMED_OUT, usage=Usage(90.0)), 90.0),
    ],
)
def test_a_wall_time_that_was_only_expected_to_suffice_is_not_held_against_a_run(
    executor, queue, tmp_path, status, limit_s
):
    one = task(tmp_path)
    executor.submit(replace(one, job=replace(one.job, walltime_s=60.0, time_limit_s=limit_s), objective=Judged()))
    queue.says["paper:00000"] = status
    ((_, outcome),) = executor.wait(1.0)
    assert (outcome.failure is FailureKind.TIMED_OUT) is (limit_s is not None)
    assert (outcome.code == CUT_SHORT) is (limit_s is None)


def test_a_job_of_an_earlier_session_is_followed_and_not_submitted_again(executor, queue, notes, tmp_path):
    queue.says["paper:7"] = RUNNING
    executor.submit(task(tmp_path, job_id="paper:7"))
    prints(tmp_path, "1\n2\n")
    assert executor.wait(1.0) == []
    prints(tmp_path, "1\n2\n3\n9.0\n")
    queue.says["paper:7"] = DONE
    ((ended, outcome),) = executor.wait(1.0)
    assert (ended.key, outcome.metrics, queue.jobs, notes) == (0, {"wall_s": 9.0}, [], [])


def test_leaving_ends_no_job_and_cancelling_ends_all(executor, queue, tmp_path):
    executor.submit(task(tmp_path))
    executor.leave()
    assert queue.ended == []
    executor.submit(task(tmp_path, 1, job_id="paper:00000"))
    executor.cancel_all()
    assert queue.ended == ["paper:00000"]
    assert executor.wait(0.0) == []


@pytest.mark.parametrize(("others_waited_s", "given_up_after_s"), [(0.0, 1800.0), (1200.0, 2400.0)])
def test_a_job_that_is_to_start_elsewhere_is_given_up_when_it_has_waited_long(
    executor, queue, tmp_path, others_waited_s, given_up_after_s
):
    executor.submit(task(tmp_path))
    executor.wait(others_waited_s)
    queue.says["paper:00000"] = DONE
    prints(tmp_path, "2.0\n")
    assert executor.wait(1.0)
    placed = task(tmp_path, 1)
    executor.submit(replace(placed, job=replace(placed.job, place=Place(avoid=("n1",)))))
    assert executor.wait(given_up_after_s - 60.0) == []
    ((_, outcome),) = executor.wait(120.0)
    assert outcome.code == NO_PLACE
    assert outcome.retryable
    assert outcome.message.endswith(" minutes to start on another node than n1, and was deleted")
    assert queue.ended == ["paper:00001"]
