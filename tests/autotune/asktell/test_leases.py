"""Leases of ask and tell: how long a run is somebody's, and who has it then."""

import time
from math import inf

import pytest

from autotune.asktell import AskTell, InvalidRequestError, LeaseConflictError, LeaseGoneError, RunReport
from autotune.asktell.errors import ClosedError
from autotune.asktell.lease import LeaseClock
from autotune.asktell.replies import Replies
from autotune.asktell.requests import AskRequest
from autotune.asktell.work_queue import WorkQueue
from autotune.storage.leases import MemoryLeaseBook
from autotune.storage.study_store import StudyStore
from objectives.base import FailureKind
from tests.support.asking import external, started

# As one session knew it, the next one, after the clock was put back by a day, and one of another machine.
BOOTS = (("boot", 1000.0), ("boot", 1000.0 - 86400.0), ("another", 5000.0))


def test_a_lease_that_ran_out_is_for_the_next_who_asks(study, clock, sqlite):
    started(study)
    first = study.ask(lease_s=10.0)
    clock[0] += 11.0
    second = study.ask(lease_s=10.0)
    assert (second.trial, second.run, second.configuration) == (first.trial, first.run, first.configuration)
    assert second.lease != first.lease
    with pytest.raises(LeaseGoneError, match="another client has the run"):
        study.tell(first.lease, RunReport(value=70.0))
    with pytest.raises(LeaseGoneError):
        study.renew(first.lease)
    study.tell(second.lease, RunReport(value=71.0))
    assert [run.outcome.metrics["time_s"] for run in StudyStore.read(sqlite, "mine").runs()] == [80.0, 71.0]


def test_who_was_about_to_get_a_run_is_refused_when_the_session_ends_first():
    queue = WorkQueue(answers=Replies(lambda: None))
    request = AskRequest(lease_s=10.0, wait_until=inf, who="me")
    queue.post(request)
    queue.wait(0.0)
    book = queue.leases(MemoryLeaseBook())
    book.take({"00001": ({"job": {}}, None)})
    assert [lease.place for lease in book.all()] == ["00001"]
    assert not request.future.done()
    queue.leave()
    queue.end(ClosedError("the session has ended"), stored=True)
    with pytest.raises(ClosedError):
        request.future.result(timeout=0)


def test_who_has_not_heard_the_answer_asks_again_and_gets_the_same_run(study, clock):
    started(study)
    lost = study.ask(lease_s=600.0, key="a")
    clock[0] += 100.0
    heard = study.ask(lease_s=600.0, key="a")
    assert (heard.lease, heard.trial, heard.configuration) == (lost.lease, lost.trial, lost.configuration)
    assert heard.lease_s == pytest.approx(500.0, abs=60.0)
    others = [study.ask(key="b"), study.ask(who="another", key="a"), study.ask(), study.ask()]
    assert len({lost.lease, *(other.lease for other in others)}) == 5
    study.tell(lost.lease, RunReport(value=70.0))
    assert study.ask(key="a").lease != lost.lease


def test_who_asks_again_while_the_first_request_still_waits_gets_one_run(study):
    default = study.ask()
    lost, heard = (study.ask_future(wait_s=60.0, key="a") for _ in range(2))
    study.tell(default.lease, RunReport(value=80.0))
    assert heard.result() is not None
    assert lost.result() is None


def test_a_lease_that_ran_out_is_not_given_again_to_who_asks_with_its_key(study, clock):
    started(study)
    lost = study.ask(lease_s=10.0, key="a")
    clock[0] += 11.0
    again = study.ask(lease_s=10.0, key="a")
    assert again.lease != lost.lease
    assert again.configuration == lost.configuration


def test_a_key_is_short(study):
    with pytest.raises(InvalidRequestError, match="key has 201 characters"):
        study.ask(key="k" * 201)


def test_who_is_late_is_heard_as_long_as_nobody_else_has_the_run(study, clock):
    started(study)
    asked = study.ask(lease_s=10.0)
    clock[0] += 1000.0
    assert study.tell(asked.lease, RunReport(value=70.0)).best


@pytest.mark.parametrize("jump_s", [-86400.0, 3600.0])
def test_a_lease_lasts_as_long_whatever_the_wall_clock_does(sqlite, monkeypatch, jump_s):
    wall, any_clock, jumped, passed = time.time, time.clock_gettime, [], []
    monkeypatch.setattr(time, "time", lambda: wall() + sum(passed) + sum(jumped))
    monkeypatch.setattr(time, "clock_gettime", lambda which: any_clock(which) + sum(passed))
    with AskTell.open(external(), sqlite) as study:
        started(study)
        short, long = study.ask(lease_s=60.0), study.ask(lease_s=600.0)
        jumped.append(jump_s)
        passed.append(300.0)
        assert study.ask(wait_s=20.0).configuration == short.configuration
        assert study.ask(wait_s=20.0).configuration != long.configuration


def test_the_next_session_reads_a_lease_by_the_same_boot_though_the_wall_clock_was_set():
    passed = [100.0]
    before, after, elsewhere = (LeaseClock(boot, at, lambda: passed[0]) for boot, at in BOOTS)
    ticket = before.ticket("node7", 60.0, 0)
    passed[0] += 50.0
    read = after.read(ticket)
    assert read.expires_at - after() == 10.0
    assert after() - read.asked_at == 50.0
    assert after.read(read) == read
    assert elsewhere.read(ticket) == ticket
    assert after.read(None) is None


def test_a_lease_can_be_renewed(study, clock):
    started(study)
    first = study.ask(lease_s=10.0)
    clock[0] += 9.0
    assert study.renew(first.lease, 10.0) == clock[0] + 10.0
    clock[0] += 9.0
    assert study.ask().trial != first.trial
    study.tell(first.lease, RunReport(value=70.0))
    with pytest.raises(LeaseConflictError, match="nothing to renew"):
        study.renew(first.lease)
    with pytest.raises(LeaseGoneError):
        study.renew("guess")


def test_a_configuration_that_ends_whoever_has_it_is_given_up(study, clock, sqlite):
    started(study)
    first = study.ask(lease_s=10.0)
    for _ in range(4):
        clock[0] += 11.0
        assert study.ask(lease_s=10.0).trial == first.trial
    clock[0] += 11.0
    assert study.ask(lease_s=10.0).trial == first.trial + 1
    failure = StudyStore.read(sqlite, "mine").trials()[1].failure
    assert (failure.failure, failure.code) == (FailureKind.TIMED_OUT, "lapsed")
