"""How often a scheduler is queried, and jobs that end during a query."""

import errno
import json
import os

import pytest

from launchers import EndReason, Job, JobState
from launchers.batch import BatchLauncher
from launchers.batch.commands import Answer, not_started_answer
from launchers.batch_systems.slurm import SLURM
from launchers.site import Site
from launchers.supervisor import STATUS_FILE

ENDED = {
    "state": "ended",
    "reason": "exited",
    "exit_code": 0,
    "message": "",
    "elapsed_s": 7.0,
    "cpu_s": 6.0,
    "peak_memory_bytes": 5,
}


class Desk:
    """Answers Slurm's commands; runs `when_asked` before it reports every job in `state`."""

    def __init__(self):
        self.asked = 0
        self.jobs = 0
        self.state = "RUNNING"
        self.when_asked = lambda: None

    def __call__(self, argv, folder=None, answer_file=None, input_file=None):
        match argv:
            case ["sbatch", "--parsable", _]:
                self.jobs += 1
                return Answer(0, f"{self.jobs}\n")
            case ["squeue", *_, jobs]:
                self.asked += 1
                try:
                    self.when_asked()
                except OSError as error:
                    return not_started_answer(argv, error)
                numbers = jobs.removeprefix("--jobs=").split(",")
                return Answer(0, "".join(f"{number}|{self.state}|None\n" for number in numbers))
            case ["scancel", *_]:
                return Answer(0)
        raise AssertionError(argv)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def desk():
    return Desk()


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def launcher(desk, clock):
    return BatchLauncher(SLURM.scheduler, Site("slurm", poll_s=10.0), commands=desk, clock=clock)


@pytest.fixture
def job_id(launcher, tmp_path):
    return launcher.submit(Job(("true",), tmp_path))


def test_ending_no_jobs_causes_no_query(launcher, desk, clock, job_id):
    for second in range(20):
        clock.now = float(second)
        launcher.poll([job_id])
        launcher.end([])
    assert desk.asked == 2
    launcher.end([job_id])
    launcher.poll([job_id])
    assert desk.asked == 3


@pytest.mark.parametrize("state", ["COMPLETED", "TIMEOUT", "CANCELLED"])
def test_job_that_ends_during_a_query_keeps_its_usage(launcher, desk, job_id, tmp_path, state):
    desk.state = state
    desk.when_asked = lambda: (tmp_path / STATUS_FILE).write_text(json.dumps(ENDED))
    status = launcher.poll([job_id])[job_id]
    assert (status.state, status.usage.elapsed_s) == (JobState.ENDED, 7.0)


def test_forgotten_job_is_read_again_from_its_files(launcher, desk, job_id, tmp_path):
    (tmp_path / STATUS_FILE).write_text(json.dumps(ENDED))
    first = launcher.poll([job_id])
    launcher.forget([job_id, job_id])
    assert launcher.poll([job_id]) == first
    assert first[job_id].reason is EndReason.EXITED
    assert desk.asked == 0


def test_lack_of_descriptors_is_given_up_but_not_an_absent_scheduler(launcher, desk, clock, job_id):
    def polled(error):
        desk.when_asked = lambda: (_ for _ in ()).throw(OSError(error, os.strerror(error)))
        for _ in range(20):
            clock.now += 300.0
            assert launcher.poll([job_id])[job_id].state is JobState.QUEUED

    polled(errno.ENOENT)
    desk.when_asked = lambda: None
    clock.now += 600.0
    launcher.poll([job_id])
    assert launcher.trouble == ""
    with pytest.raises(OSError, match=r"for 15 minutes.*squeue: Too many open files.*jobs keep running") as caught:
        polled(errno.EMFILE)
    assert "\n" not in str(caught.value)
