"""The lock of a study between real processes: naming the holder, waiting for it, and taking over."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from autotune.errors import BusyError
from autotune.locks import Holder, IfHeld, LockFile
from autotune.storage.address import lock_path
from autotune.storage.study_lock import StudyLock
from tests.support.awk_study import held_session
from tests.support.warm import autotune

pytestmark = pytest.mark.cores(1)

HOLD = """
import pathlib, signal, sys, time
from autotune.locks import IfHeld
from autotune.storage.study_lock import StudyLock

url, if_held, when_asked = sys.argv[1:]
lock = StudyLock.acquire(url, "qe", IfHeld[if_held], lambda line: print(line, flush=True))
if when_asked == "stores":
    def store(*_):
        time.sleep(0.5)
        pathlib.Path("stored").write_text("everything")
        lock.release()
        sys.exit()
    signal.signal(signal.SIGTERM, store)
elif when_asked == "ignores":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def process(url, if_held=IfHeld.LEAVE, when_asked=""):
    command = [sys.executable, "-c", HOLD, url, if_held.name, when_asked]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def holding(url, when_asked=""):
    with process(url, when_asked=when_asked) as holder:
        assert holder.stdout.readline() == "held\n"
        yield holder


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return request.getfixturevalue(request.param)


@pytest.fixture
def path(sqlite):
    return lock_path(sqlite, "qe")


def test_a_second_one_is_told_who_where_and_since_when_and_what_to_do(url):
    with holding(url) as holder:
        with pytest.raises(BusyError) as caught:
            StudyLock.acquire(url, "qe")
        said = str(caught.value)
        assert f"process {holder.pid} on {socket.gethostname()} since 20" in said
        assert "--wait" in said
        assert said.endswith("--take-over")
        # Another study of the storage is free.
        StudyLock.acquire(url, "other").release()


def test_who_has_just_got_it_is_named_although_its_name_comes_a_moment_later(sqlite, path):
    holder = LockFile.open(path)
    assert holder.lock()
    signing = threading.Timer(0.2, holder.sign)
    signing.start()
    with pytest.raises(BusyError, match=f"process {os.getpid()} on"):
        StudyLock.acquire(sqlite, "qe")
    signing.join()
    holder.close()


def test_who_waits_is_told_for_whom_and_goes_on_when_it_is_free(url):
    with holding(url) as holder, process(url, IfHeld.WAIT) as waiter:
        assert f"is being worked on by process {holder.pid} on" in waiter.stdout.readline()
        assert waiter.poll() is None
        holder.kill()
        assert waiter.stdout.readline() == "held\n"
        with pytest.raises(BusyError, match=f"process {waiter.pid}"):
            StudyLock.acquire(url, "qe")


def test_several_may_wait_and_each_gets_it_once(url):
    with (
        holding(url) as holder,
        process(url, IfHeld.WAIT) as one,
        process(url, IfHeld.WAIT) as other,
    ):
        for waiter in (one, other):
            assert f"process {holder.pid}" in waiter.stdout.readline()
        holder.kill()
        # Either may come first: the other names it, and gets the study when it ends.
        said = {waiter.pid: waiter.stdout.readline() for waiter in (one, other)}
        first, second = (one, other) if said[one.pid] == "held\n" else (other, one)
        assert said[first.pid] == "held\n"
        assert f"process {first.pid}" in said[second.pid]
        first.kill()
        assert second.stdout.readline() == "held\n"


def test_control_c_leaves_the_queue(sqlite):
    with holding(sqlite) as holder, process(sqlite, IfHeld.WAIT) as waiter:
        waiter.stdout.readline()
        waiter.send_signal(signal.SIGINT)
        assert waiter.wait() != 0
        assert "KeyboardInterrupt" in waiter.stderr.read()
        assert holder.poll() is None


def test_a_free_study_is_neither_waited_for_nor_taken(url):
    said = []
    for if_held in IfHeld:
        StudyLock.acquire(url, "qe", if_held, said.append).release()
    assert said == []


def test_who_is_asked_to_stop_stores_first(url, tmp_path):
    said = []
    with holding(url, "stores") as holder:
        lock = StudyLock.acquire(url, "qe", IfHeld.TAKE_OVER, said.append)
        assert (tmp_path / "stored").read_text() == "everything"
        assert holder.wait() == 0
    assert [f"asked process {holder.pid} on" in line for line in said] == [True]
    with pytest.raises(BusyError, match=f"process {os.getpid()} on"):
        StudyLock.acquire(url, "qe")
    lock.release()


def test_who_does_not_let_go_is_named_with_what_ends_it(url):
    with holding(url, "ignores") as holder:
        with pytest.raises(BusyError, match=rf"kill -9 {holder.pid}`"):
            StudyLock.acquire(url, "qe", IfHeld.TAKE_OVER, stop_timeout_s=0.1)
        assert holder.poll() is None


def test_a_holder_on_another_host_is_not_touched_from_here(sqlite, path):
    with holding(sqlite) as holder:
        path.write_text(str(Holder(holder.pid, "gadi-login-01", "2026-11-21 12:00 UTC")))
        with pytest.raises(
            BusyError, match=rf"on gadi-login-01 use the same command with --take-over, or `kill {holder.pid}`"
        ):
            StudyLock.acquire(sqlite, "qe", IfHeld.TAKE_OVER)
        with pytest.raises(BusyError, match="--take-over on gadi-login-01"):
            StudyLock.acquire(sqlite, "qe")
        assert holder.poll() is None


@pytest.mark.parametrize("wrong", ["another's number", "a dead one's", "nobody's", "no text"])
def test_a_process_that_does_not_hold_the_study_is_not_asked_to_stop(sqlite, path, wrong):
    innocent = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
    with innocent, holding(sqlite) as holder:
        if wrong == "a dead one's":
            innocent.kill()
            innocent.wait()
        here = Holder(innocent.pid, socket.gethostname(), "2026-11-21 12:00 UTC")
        path.write_text({"nobody's": "", "no text": "\0\xff what"}.get(wrong, str(here)))
        with pytest.raises(BusyError, match="fuser"):
            StudyLock.acquire(sqlite, "qe", IfHeld.TAKE_OVER)
        assert holder.poll() is None
        assert wrong == "a dead one's" or innocent.poll() is None
        innocent.kill()


def another(folder, *words):
    """Start another session; what it says at once is in its `stderr`."""
    command = [sys.executable, "-m", "autotune", "study", "./mine.toml", "--verbose", *words]
    return subprocess.Popen(
        command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def test_a_session_is_taken_over_and_nothing_of_it_is_lost_or_run_again(tmp_path):
    with held_session(tmp_path, "--trials", "100") as session:
        both = autotune(tmp_path, "study", "./mine.toml", "--wait", "--take-over")
        assert both.returncode == 2
        refused = autotune(tmp_path, "confirm", "mine")
        assert refused.returncode == 6
        assert f"process {session.pid} on" in refused.stderr
        with another(tmp_path, "--trials", "4", "--take-over") as second:
            assert f"asked process {session.pid} on" in second.stderr.readline()
            said = session.stderr.read()
            assert session.wait() == 130, said
            (tmp_path / "hold").unlink()
            ended = second.stderr.read()
            assert second.wait() == 0, ended
    assert "the same command resumes" in said
    assert "Traceback" not in said
    assert "received at time" not in said  # as Ray has it
    done = {0, 1, 2, *map(int, re.findall(r"^trial (\d+):", said, re.MULTILINE))}
    runs = json.loads(autotune(tmp_path, "trials", "mine", "--runs", "--json").stdout)
    assert done <= {run["trial"] for run in runs}
    assert len({run["started"] for run in runs}) == len(runs)
    assert not {int(number) for number in re.findall(r"^trial (\d+):", ended, re.MULTILINE)} & done


@pytest.mark.full
def test_a_session_that_waits_finds_everything_done(tmp_path):
    with held_session(tmp_path, "--trials", "8") as session, another(tmp_path, "--trials", "9", "--wait") as second:
        assert f"process {session.pid} on" in second.stderr.readline()
        (tmp_path / "hold").unlink()
        assert session.stderr.read()
        assert session.wait() == 0
        said = second.stderr.read()
        assert second.wait() == 0, said
    assert "trial 8:" in said
    assert "trial 7:" not in said


@pytest.mark.full
def test_a_study_elsewhere_waits_for_the_cores(tmp_path):
    elsewhere = ("--trials", "1", "--storage", "other.db", "--wait")
    with held_session(tmp_path, "--trials", "100") as session, another(tmp_path, *elsewhere) as second:
        assert any("waiting (Ctrl-C leaves): core" in line for line in second.stderr)
        session.send_signal(signal.SIGTERM)
        told = session.stderr.read()
        assert session.wait() == 130, told
        (tmp_path / "hold").unlink()
        said = second.stderr.read()
        assert second.wait() == 0, said
