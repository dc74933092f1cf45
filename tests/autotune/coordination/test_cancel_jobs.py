"""Cancel the jobs of a study together, and report each by its outcome."""

import json

import pytest

from autotune.coordination.cancel_jobs import Cancelled, cancel_leased
from autotune.coordination.lease_record import LeaseRecord
from autotune.errors import CannotRunHereError
from autotune.records.study import Purpose
from autotune.storage.leases import MemoryLeaseBook
from launchers import Job
from launchers.batch import BatchLauncher
from launchers.batch.commands import Answer
from launchers.batch_systems.slurm import SLURM
from launchers.site import Site
from tests.launchers.answers import Clock, FakeSlurm, end
from tests.support.command_line import invoke


@pytest.fixture
def queue() -> FakeSlurm:
    return FakeSlurm()


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("time.sleep", clock.move)
    return clock


@pytest.fixture
def make(queue, clock):
    """Make a launcher; how many there were is known."""

    def make(scheduler: str) -> BatchLauncher:
        make.made.append(scheduler)
        return BatchLauncher(SLURM.scheduler, Site(scheduler, poll_s=1.0), queue, clock)

    make.made = []
    return make


@pytest.fixture
def book():
    return MemoryLeaseBook()


@pytest.fixture
def leave(book, queue, clock, tmp_path):
    """Leave a run in flight, as a tuner that died does; return its folder and the id of its job."""
    launcher = BatchLauncher(SLURM.scheduler, Site("slurm"), queue, clock)

    def leave(name: str, scheduler: str = "slurm", *, noted: bool = True):
        folder = tmp_path / name
        folder.mkdir()
        leased = LeaseRecord(Purpose({}), {"folder": str(folder)}, name, None, "", None, 0, 1, scheduler)
        book.take({name: (leased.to_dict(), None)})
        if not scheduler:
            return folder, None
        job_id = launcher.submit(Job(("true",), folder))
        if noted:
            book.note_job(name, job_id)
        return folder, job_id

    return leave


@pytest.fixture
def cancel(book, make):
    return lambda: cancel_leased(book, make)


def places(book) -> list[str]:
    return [lease.place for lease in book.all()]


def test_all_jobs_are_ended_with_one_command_by_one_launcher(queue, make, book, leave, cancel):
    ids = [leave(name)[1] for name in "abc"]
    ids.append(leave("d", noted=False)[1])
    leave("local", "")
    assert cancel() == Cancelled(cancelled=tuple(ids))
    assert queue.commands("scancel") == [["scancel", "1", "2", "3", "4"]]
    assert make.made == ["slurm"]
    assert places(book) == []
    assert cancel() == Cancelled()


def test_a_job_that_ended_by_itself_is_not_cancelled_and_its_result_is_kept(queue, book, leave, cancel):
    _, first = leave("a")
    folder, second = leave("b")
    end(folder)
    assert cancel() == Cancelled(cancelled=(first,), ended=(second,))
    assert queue.commands("scancel") == [["scancel", "1"]]
    assert places(book) == ["b"]


def test_a_job_that_somebody_else_cancelled_was_not_cancelled_here(queue, book, leave, cancel):
    _, job_id = leave("a")
    queue.states["1"] = "CANCELLED"
    assert cancel() == Cancelled(ended=(job_id,))
    assert queue.commands("scancel") == []


def test_a_job_that_cannot_be_ended_keeps_no_other_alive(queue, book, leave, cancel, clock):
    ids = [leave(name)[1] for name in "abc"]
    queue.immortal = "1"
    assert cancel() == Cancelled(cancelled=tuple(ids[1:]), left=(ids[0],))
    assert places(book) == ["a"]
    assert clock.now_s < 200
    queue.immortal = ""
    assert cancel() == Cancelled(cancelled=(ids[0],))


def test_a_scheduler_that_is_away_is_told(queue, book, leave, cancel):
    ids = tuple(leave(name)[1] for name in "ab")
    queue.trouble = Answer(1, stderr="Unable to contact slurm controller")
    done = cancel()
    assert (done.cancelled, done.left) == ((), ids)
    assert "Unable to contact slurm controller" in done.trouble
    assert places(book) == ["a", "b"]


DONE = Cancelled(("slurm:1:/a",), ("slurm:2:/b", "slurm:3:/c"), ("slurm:4:/d",), "slurm: away")


@pytest.fixture
def command(monkeypatch, tmp_path):
    (tmp_path / "autotune.db").touch()

    def command(done: Cancelled, *words: str):
        monkeypatch.setattr("autotune.coordination.cancel_jobs.cancel_jobs", lambda *_: done)
        return invoke("cancel", "mine", "--storage", str(tmp_path / "autotune.db"), *words)

    return command


def test_what_became_of_each_job_is_told(command):
    told = command(DONE)
    assert told.stdout.splitlines() == [
        "cancelled 1 job: 1",
        "already ended: 2 jobs: 2, 3; the same study command collects them",
    ]
    assert isinstance(told.exception, CannotRunHereError)
    assert told.exception.exit_code == 3
    assert str(told.exception).startswith("could not cancel 1 job: 4 (slurm: away)")


def test_another_program_is_told_as_well(command):
    told = command(DONE, "--json")
    assert json.loads(told.stdout) == {
        "cancelled": ["slurm:1:/a"],
        "ended": ["slurm:2:/b", "slurm:3:/c"],
        "left": ["slurm:4:/d"],
        "trouble": "slurm: away",
    }
    assert isinstance(told.exception, CannotRunHereError)


def test_nothing_to_cancel_is_told(command):
    told = command(Cancelled())
    assert (told.stdout, told.exit_code) == ("study 'mine' has no job in a queue\n", 0)
