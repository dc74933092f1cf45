"""The row that holds a study on a server: when its holder is taken for dead, and what that one can do then."""

import subprocess
import sys

import pytest
import sqlalchemy

from autotune.errors import BusyError
from autotune.storage.leases import LEASES
from autotune.storage.server_lock import SILENT_S, ServerLock
from autotune.storage.study_lock import StudyLock, study_holder
from tests.autotune.storage.test_run_log import OTHER, RUN, study
from tests.support.held_study import held_study
from tests.support.waiting import wait_for


class Server:
    """A server whose rows are changed as no session does."""

    def __init__(self, url):
        self.url, self.engine = url, sqlalchemy.create_engine(url)

    def change(self, seconds=0.0, **record):
        """Let time pass for the holder of study `mine`, or be another process."""
        with self.engine.begin() as connection:
            row = connection.execute(sqlalchemy.select(LEASES)).one()
            values = {"record": row.record | record, "heartbeat_s": row.heartbeat_s - seconds}
            connection.execute(sqlalchemy.update(LEASES).values(values))


@pytest.fixture
def server(postgresql):
    return Server(postgresql)


@pytest.fixture
def killed(server):
    """Leave the row of a session that was killed."""
    with held_study(server.url) as session:
        assert f"process {session.pid} on" in study_holder(server.url, "mine")
        session.kill()


@pytest.mark.slow
@pytest.mark.usefixtures("killed")
def test_the_row_of_a_process_of_this_host_that_is_no_more_holds_nothing(server):
    assert study_holder(server.url, "mine") is None
    StudyLock.acquire(server.url, "mine").release()


@pytest.mark.usefixtures("killed")
def test_a_later_process_of_the_same_number_is_not_the_holder(server):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as later:
        server.change(pid=later.pid)
        StudyLock.acquire(server.url, "mine").release()
        later.kill()


@pytest.mark.usefixtures("killed")
def test_a_process_of_another_host_is_dead_when_it_was_silent_for_three_minutes(server):
    server.change(host="elsewhere")
    with pytest.raises(BusyError, match=r"being worked on by process \d+ on elsewhere .*--take-over on elsewhere"):
        StudyLock.acquire(server.url, "mine")
    server.change(seconds=SILENT_S)
    assert study_holder(server.url, "mine") is None
    slept = []
    lease = ServerLock(server.url, "mine", slept.append)
    assert lease.lock()
    assert slept, "the server may just have been away: the holder has the time of another sign of life"
    lease.close()


@pytest.mark.usefixtures("killed")
def test_who_is_heard_again_keeps_the_study(server):
    server.change(seconds=SILENT_S, host="elsewhere")
    lease = ServerLock(server.url, "mine", lambda _: server.change(seconds=-SILENT_S))
    assert not lease.lock()
    lease.close()


def test_a_session_says_that_it_lives(server, monkeypatch):
    monkeypatch.setattr("autotune.storage.server_lock._BEAT_S", 0.05)
    lock = StudyLock.acquire(server.url, "mine")
    server.change(seconds=2 * SILENT_S)
    wait_for(lambda: ServerLock(server.url, "mine")._row().age_s < SILENT_S)
    lock.check()
    lock.release()


def test_who_was_taken_for_dead_stores_nothing_and_is_told_by_whom(server):
    store = study(server.url)
    asleep = StudyLock.acquire(server.url, "mine")
    store.set_fence(asleep.fence)
    store.leases().take({"00000-0": ({}, None)})
    store.add_runs([RUN], ["00000-0"])
    server.change(seconds=SILENT_S, host="elsewhere")
    other = ServerLock(server.url, "mine", lambda _: None)
    assert other.lock()
    book = store.leases()
    for write in (
        lambda: store.add_runs([OTHER]),
        lambda: book.take({"00001-0": ({}, None)}),
        lambda: book.note_job("00000-0", "17"),
        asleep.renew,
        asleep.check,
    ):
        with pytest.raises(BusyError, match=r"'mine' was taken over by process \d+ on .* reach the storage for 3 min"):
            write()
    asleep.release()
    assert study_holder(server.url, "mine") is None, "it is this process"
    other.check()
    assert (store.runs(), book.all()) == ([RUN], [])
    other.close()
