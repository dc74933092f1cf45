"""The status file: its content while a study runs, and that failures to write it do not stop the study."""

import json
import os
from dataclasses import replace
from math import inf, nan

import pytest

from autotune.display.console import Running, Status
from autotune.display.status_file import StatusDisplay
from autotune.machines.boot import boot_id
from autotune.statistics.standings import Standings
from launchers.process_tree import start_time
from objectives.base import Progress
from tests.support.fakes import SECONDS, ListDisplay

RUNNING = Running(7, {"np": 4, "blas": "fast"}, 12.3456, Progress(3, {"loss": 0.5, "gradient": nan}))
STATUS = Status(Standings({}, SECONDS), budget=20, finished=5, running=(RUNNING,), left_s=90.0, more=2)


QUEUED = Running(8, {"np": 2}, 60.0, waits="Not Running: no free nodes")


class Watched:
    """A status display with a clock of its own."""

    def __init__(self, path):
        self.now = 0.0
        self.path = path
        self.inner = ListDisplay()
        self.display = StatusDisplay(self.inner, path, lambda: self.now)

    def read(self):
        return json.loads(self.path.read_text(), parse_constant=pytest.fail)

    def update(self, after_s=2.0, **changes):
        self.now += after_s
        self.display.update(replace(STATUS, **changes))
        return self.read()


@pytest.fixture
def watched(tmp_path):
    return Watched(tmp_path / "status.json")


def test_it_says_why_a_run_waits(watched):
    assert [row["waits"] for row in watched.update(running=(RUNNING, QUEUED))["running"]] == ["", QUEUED.waits]


def test_it_says_how_things_stand(watched):
    assert watched.read()["phase"] == "starting"
    found = watched.update()
    assert found.pop("written") > 0
    assert found.pop("process") == {"pid": os.getpid(), "started": start_time(os.getpid()), "boot": boot_id()}
    assert found == {
        "phase": "tuning",
        "message": "",
        "running": [
            {
                "trial": 7,
                "label": "",
                "configuration": {"np": 4, "blas": "fast"},
                "elapsed_s": 12.346,
                "step": 3,
                "waits": "",
                "metrics": {"loss": 0.5, "gradient": None},
            }
        ],
        "left_s": 90.0,
        "left_most_s": None,
        "finished": 5,
        "budget": 20,
        "open_ended": False,
        "more": 2,
        "advanced": 0,
        "pid": os.getpid(),
    }
    assert watched.inner.status == STATUS


def test_it_is_written_at_most_once_a_second_but_for_a_new_phase(watched):
    watched.update()
    assert watched.update(0.5, finished=6)["finished"] == 5
    assert watched.update(0.6, finished=6)["finished"] == 6
    assert watched.update(0.1, finished=0, phase="confirming")["phase"] == "confirming"


def test_progress_is_counted_from_where_the_session_began(watched):
    assert watched.update(finished=5)["advanced"] == 0
    assert watched.update(finished=5)["advanced"] == 0
    assert watched.update(finished=8)["advanced"] == 1
    assert watched.update(finished=0, phase="confirming")["advanced"] == 2
    assert watched.update(finished=1, phase="confirming")["advanced"] == 3


def test_a_wait_is_a_phase_until_something_happens(watched):
    watched.display.waits("core 0 is in use")
    assert (watched.read()["phase"], watched.read()["message"]) == ("waiting", "core 0 is in use")
    watched.display.line("machine: this one")
    assert (watched.read()["phase"], watched.read()["message"]) == ("starting", "")
    assert watched.inner.lines == ["core 0 is in use", "machine: this one"]


def test_the_end_is_said_and_nothing_runs_then(watched):
    watched.update()
    watched.display.close()
    watched.display.close()
    found = watched.read()
    assert (found["phase"], found["running"], found["left_s"], found["finished"]) == ("ended", [], None, 5)


@pytest.mark.parametrize("left_s", [inf, nan, None])
def test_what_json_cannot_say_is_null(watched, left_s):
    assert watched.update(left_s=left_s)["left_s"] is None


def test_a_disk_that_is_full_keeps_nothing_from_going_on(watched, tmp_path, monkeypatch):
    before = watched.update()

    def full(descriptor, *_, **__):
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", full)
    assert watched.update(finished=9) == before
    assert list(tmp_path.iterdir()) == [watched.path]
    assert watched.inner.status.finished == 9


def test_a_folder_that_is_not_there_keeps_nothing_from_going_on(tmp_path):
    display = StatusDisplay(ListDisplay(), tmp_path / "none" / "status.json")
    display.update(STATUS)
    display.close()
    assert display.inner.status == STATUS
