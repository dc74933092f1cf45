"""The shim, with real processes: how an end is written down, and what cannot end a study."""

import json
import os
import signal
import stat
import subprocess
import sys

import pytest

from autotune.supervision import shim
from tests.autotune.supervision.services import until

LOG_BYTES = 5000
DESCRIPTORS = 512


class Guarded:
    """A folder, and commands that run in it under a warden."""

    def __init__(self, folder):
        self.folder = folder
        self.tokens = 0

    def run(self, code, *words, **changes):
        self.tokens += 1
        spec = {
            "command": [sys.executable, "-c", code, *words],
            "cwd": os.fspath(self.folder),
            "token": f"{self.tokens}",
            "serial": 3,
            "deaths": 0,
            "log_bytes": LOG_BYTES,
            "descriptors": DESCRIPTORS,
            **changes,
        }
        return subprocess.run(
            [sys.executable, "-I", "-S", shim.__file__, os.fspath(self.folder)],
            input=json.dumps(spec),
            capture_output=True,
            text=True,
            check=False,
        )

    def read(self, name):
        return json.loads((self.folder / name).read_text())

    def log(self):
        return (self.folder / shim.LOG).read_text()

    def end(self):
        until(lambda: (self.folder / shim.END).exists() and self.read(shim.END)["token"] == f"{self.tokens}")
        # Only then may another one look after the folder.
        until(lambda: not shim.lives(self.read(shim.PROCESS)["warden"]))
        return self.read(shim.END)

    def until_said(self, text):
        until(lambda: text in self.log(), self.log)


@pytest.fixture
def guarded(tmp_path):
    found = Guarded(tmp_path)
    yield found
    if (tmp_path / shim.PROCESS).exists():
        for of in ("warden", "child"):
            one = found.read(shim.PROCESS)[of]
            if shim.lives(one):
                os.kill(one["pid"], signal.SIGKILL)


ASKED = """
import signal, sys, time
for number, code in ((signal.SIGUSR1, 8), (signal.SIGTERM, 130), (signal.SIGINT, 131)):
    signal.signal(number, lambda *_, code=code: sys.exit(code))
print("ready", flush=True)
time.sleep(3600)
"""


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("", (0, None)),
        ("raise SystemExit(4)", (4, None)),
        ("import os; os.kill(os.getpid(), 9)", (None, 9)),
        ("1 / 0", (1, None)),
    ],
)
def test_how_a_study_ended_is_written_down(guarded, code, expected):
    assert guarded.run(code).returncode == 0
    end = guarded.end()
    assert (end["code"], end["signal"]) == expected
    assert end["error"] == ""


def test_a_command_that_cannot_be_started_is_said(guarded):
    guarded.run("", command=["/no/such/python"])
    assert guarded.end()["error"] == "/no/such/python: No such file or directory"
    guarded.run("", cwd="/no/such/folder")
    assert guarded.end()["error"] == "/no/such/folder: No such file or directory"


@pytest.mark.parametrize(
    ("sent", "code"),
    [(signal.SIGUSR1, 8), (signal.SIGTERM, 130), (signal.SIGHUP, 130), (signal.SIGINT, 131)],
)
def test_signals_are_handed_on(guarded, sent, code):
    guarded.run(ASKED)
    guarded.until_said("ready")
    os.kill(guarded.read(shim.PROCESS)["warden"]["pid"], sent)
    assert guarded.end()["code"] == code


def test_it_is_in_a_session_of_its_own_without_a_terminal_and_nothing_to_read(guarded):
    guarded.run("import os, sys; print(os.getsid(0), repr(sys.stdin.read()), os.getcwd())")
    guarded.end()
    session, read, folder = guarded.log().splitlines()[1].split()
    assert int(session) != os.getsid(0)
    assert read == "''"
    assert folder == os.fspath(guarded.folder)


def test_signals_that_the_caller_ignores_still_reach_the_study(guarded):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        guarded.run(
            "import signal; print(signal.getsignal(2) is signal.default_int_handler, signal.pthread_sigmask(0, []))"
        )
    finally:
        signal.signal(signal.SIGINT, before)
    guarded.end()
    assert "True set()" in guarded.log()


def test_the_study_goes_on_without_its_warden(guarded):
    guarded.run(ASKED)
    guarded.until_said("ready")
    known = guarded.read(shim.PROCESS)
    os.kill(known["warden"]["pid"], signal.SIGKILL)
    until(lambda: not shim.lives(known["warden"]))
    assert shim.lives(known["child"])
    second = guarded.run("print('another')")
    assert (second.returncode, second.stderr) == (1, shim.BUSY)
    assert guarded.read(shim.PROCESS) == known
    os.kill(known["child"]["pid"], signal.SIGTERM)
    until(lambda: not shim.lives(known["child"]))
    assert not (guarded.folder / shim.END).exists()


def test_there_is_one_warden_at_a_time(guarded):
    guarded.run(ASKED)
    guarded.until_said("ready")
    before = guarded.read(shim.PROCESS)
    # Not even if its identity cannot be read.
    (guarded.folder / shim.PROCESS).write_text("{")
    second = guarded.run("print('another')")
    assert (second.returncode, second.stderr) == (1, shim.BUSY)
    assert "another" not in guarded.log()
    (guarded.folder / shim.PROCESS).write_text(json.dumps(before))


def test_a_folder_that_is_gone_is_said_and_nothing_is_started(guarded, tmp_path):
    guarded.folder = tmp_path / "gone"
    ended = guarded.run("open('started', 'w')", cwd=os.fspath(tmp_path))
    assert ended.returncode == 1
    assert ended.stderr == "No such file or directory"
    assert not (tmp_path / "started").exists()


def test_a_long_log_is_cut_to_two_parts_and_the_end_is_kept(guarded):
    lines = 2000
    code = f"import time\nfor n in range({lines}): print('line', n, flush=True); n % 200 or time.sleep(0.01)"
    guarded.run(code)
    guarded.end()
    # Longer than both parts together may be, so the warden has cut while it ran, or does so now.
    shim.limit_log(os.fspath(guarded.folder), LOG_BYTES)
    log, older = guarded.folder / shim.LOG, guarded.folder / shim.OLDER_LOG
    assert log.stat().st_size <= LOG_BYTES
    assert f"line {lines - 1}\n" in older.read_text() + log.read_text()


def test_what_writes_goes_on_at_the_beginning_of_a_log_that_was_cut(guarded):
    cut = "while os.fstat(1).st_size > 8999: time.sleep(0.01)"
    guarded.run(f"import os, sys, time\nprint('x' * 9000, flush=True)\n{cut}\n{ASKED}")
    guarded.until_said("ready")
    assert (guarded.folder / shim.LOG).stat().st_size < LOG_BYTES
    assert "x" * 9000 in (guarded.folder / shim.OLDER_LOG).read_text()
    os.kill(guarded.read(shim.PROCESS)["child"]["pid"], signal.SIGTERM)
    guarded.end()
    assert "\0" not in guarded.log()
    assert "ended: code 130" in guarded.log()


def test_only_its_user_may_read_its_files(guarded):
    guarded.run("print('x' * 9000)")
    guarded.end()
    shim.limit_log(os.fspath(guarded.folder), LOG_BYTES)
    for name in (shim.PROCESS, shim.END, shim.LOG, shim.OLDER_LOG, shim.LOCK):
        assert stat.S_IMODE((guarded.folder / name).stat().st_mode) == 0o600


def test_a_process_is_told_from_others_that_have_its_number():
    mine = shim.identity(os.getpid())
    assert shim.lives(mine)
    assert not shim.lives({**mine, "started": mine["started"] - 1})
    assert not shim.lives({**mine, "boot": "another"})
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert shim.identity(ended.pid) is None, "a zombie does not live"


@pytest.mark.parametrize("note", [None, [], {}, {"pid": "1"}, {"pid": 0}, {"pid": -1}, {"pid": True}, {"pid": 10**30}])
def test_what_is_no_note_of_a_process_does_not_live(note):
    assert not shim.lives(note)


def test_a_file_that_cannot_be_written_is_as_it_was(tmp_path):
    path = tmp_path / "note.json"
    shim.write_private(os.fspath(path), {"a": 1})
    with pytest.raises(TypeError):
        shim.write_private(os.fspath(path), {"a": object()})
    assert json.loads(path.read_text()) == {"a": 1}


def test_a_new_name_is_on_disk_when_its_writer_says_so(tmp_path, monkeypatch):
    synced, sync = [], os.fsync
    monkeypatch.setattr(shim.os, "fsync", lambda one: synced.append(stat.S_ISDIR(os.fstat(one).st_mode)) or sync(one))
    shim.write_private(os.fspath(tmp_path / "file"), {})
    assert synced == [False, True]
