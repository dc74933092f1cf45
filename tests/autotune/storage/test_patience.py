"""A storage that does not answer for a while: what is written waits, and is stored once."""

import re
import socket
import sqlite3
import threading
from contextlib import closing, contextmanager, suppress

import pytest

from autotune.coordination.session_settings import STORAGE_PATIENCE, storage_patience_s
from autotune.errors import StorageError, StudyFileError
from autotune.search.distributions import distributions_of
from autotune.storage.connection import Patience, StorageAwayError
from autotune.storage.study_store import StudyStore
from tests.autotune.storage.test_run_log import OTHER, RUN, SPACE, study
from tests.conftest import connections_closed
from tests.support import postgres


class Time:
    """Time that passes while somebody sleeps."""

    def __init__(self):
        self.now, self.slept, self.said = 0.0, [], []

    def patience(self, most_s):
        return Patience(most_s, self.said.append, lambda: self.now, self.sleep)

    def sleep(self, duration_s):
        self.slept.append(duration_s)
        self.now += duration_s


def away(until, time):
    def use():
        if time.now < until:
            raise StorageAwayError("storage x cannot be used: gone; mend it")
        return "stored"

    return use


def test_the_pauses_grow_and_what_happens_is_said():
    time = Time()
    assert time.patience(900.0)(away(100.0, time)) == "stored"
    assert time.slept[:4] == [0.25, 0.5, 1.0, 2.0]
    assert max(time.slept) == 30.0
    waits, answers = time.said
    assert re.match(r"the storage has not answered since \d\d:\d\d:\d\d: waiting up to 15 min, runs continue \(", waits)
    assert answers.startswith("the storage answers again, after 1")


def test_it_ends_and_who_waits_around_it_does_not_begin_anew():
    time = Time()
    with pytest.raises(StorageError, match="gone"):
        time.patience(60.0)(lambda: time.patience(60.0)(away(1e9, time)))
    assert time.now == 60.0


def test_without_patience_it_is_refused_at_once():
    time = Time()
    with pytest.raises(StorageError, match="gone"):
        time.patience(0.0)(away(1.0, time))
    assert (time.slept, time.said) == ([], [])


@pytest.mark.parametrize(("text", "patience_s"), [(None, 900.0), ("1h", 3600.0), ("0", 0.0)])
def test_how_long_a_session_waits(monkeypatch, text, patience_s):
    if text is not None:
        monkeypatch.setenv(STORAGE_PATIENCE, text)
    assert storage_patience_s() == patience_s
    monkeypatch.setenv(STORAGE_PATIENCE, "soon")
    with pytest.raises(StudyFileError, match=r"AUTOTUNE_STORAGE_PATIENCE .* 'soon' is not a duration"):
        storage_patience_s()


def test_a_file_that_another_process_keeps_locked_is_waited_for(sqlite, tmp_path, monkeypatch):
    monkeypatch.setattr("autotune.storage.connection._BUSY_TIMEOUT_S", 0.01)
    store, said = study(sqlite), []
    with closing(sqlite3.connect(tmp_path / "autotune.db", isolation_level=None)) as another:
        another.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageError, match="locked"):
            store.add_runs([RUN])
        store.set_patience(Patience(60.0, said.append, sleep=lambda _: another.in_transaction and another.rollback()))
        store.add_runs([RUN])
    assert store.runs() == [RUN]
    assert len(said) == 2


def _shut(*ends):
    for end in ends:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


def _to_server(client, server, answer, cuts):
    with suppress(OSError):
        while data := client.recv(65536):
            if cuts[0] and b"COMMIT" in data:
                answer.append("is lost")
            server.sendall(data)
    _shut(client, server)


def _to_client(client, server, answer, cuts):
    with suppress(OSError):
        while (data := server.recv(65536)) and not answer:
            client.sendall(data)
    cuts[0] -= len(answer)
    _shut(client, server)


@contextmanager
def cutting(port):
    """Provide a port that leads to the server's, and how many connections to cut when they commit next."""
    cuts, done = [0], threading.Event()

    sockets, threads = [], []

    def serve():
        while not done.is_set():
            ends = listening.accept()[0], socket.create_connection(("127.0.0.1", port))
            sockets.extend(ends)
            answer = []
            for forward in (_to_server, _to_client):
                threads.append(threading.Thread(target=forward, args=(*ends, answer, cuts)))
                threads[-1].start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        serving = threading.Thread(target=serve)
        serving.start()
        try:
            yield listening.getsockname()[1], cuts
        finally:
            done.set()
            socket.create_connection(listening.getsockname()).close()
            serving.join()
            _shut(*sockets)
            for thread in threads:
                thread.join()
            for one in sockets:
                one.close()


@pytest.mark.slow
def test_what_a_server_has_committed_when_the_connection_is_cut_is_stored_once(postgresql_server, postgresql):
    with cutting(postgresql_server.port) as (port, cuts):
        store = study(postgresql.replace(f":{postgresql_server.port}/", f":{port}/"))
        said = []
        store.set_patience(Patience(60.0, said.append))
        book = store.leases()

        def cut(use):
            cuts[0] = 1
            result = use()
            assert cuts == [0], "the connection was cut"
            return result

        cut(lambda: book.take({"00000-0": ({"a": 1}, None)}))
        assert cut(lambda: store.add_trial(SPACE.default(), distributions_of(SPACE))) == 0
        cut(lambda: store.add_runs([RUN, OTHER]))
        cut(lambda: book.note_job("00000-0", "17"))
        cut(lambda: store.set_attribute("verdict", {"winner": 0}))
    after = StudyStore.read(postgresql, "mine")
    assert (after.runs(), len(after.trials()), after.attribute("verdict")) == ([RUN, OTHER], 1, {"winner": 0})
    assert [line.partition(" since")[0] for line in said[::2]] == ["the storage has not answered"] * 5


@pytest.mark.slow
@pytest.mark.skipif(postgres.missing() is not None, reason=str(postgres.missing()))
def test_a_server_that_is_restarted_is_waited_for():
    with postgres.server() as server, connections_closed():
        store = study(server.url())
        # The server of the tests answers before what it did is on disk, and is stopped as by a crash.
        server.execute("CHECKPOINT")
        server.stop()
        store.set_patience(Patience(120.0, sleep=lambda _: server.start()))
        store.add_runs([RUN])
        assert (store.runs(), store.leases().all(), store.trials()) == ([RUN], [], [])
