"""How long the leading process of the data-parallel training waits for its workers, which are fakes here."""

from multiprocessing.connection import wait
from time import sleep
from types import SimpleNamespace

import pytest

from studies.programs.training.ddp import workers
from studies.programs.training.ddp.messages import Brake, Pulse, Shared
from studies.programs.training.ddp.options import settings_of

pytestmark = [
    pytest.mark.full,
]


def stand_in(rank, settings, shared, parent, folder):
    """Get on each time that the leading process says so; then report."""
    while parent.recv() == "get on":
        shared.pulse.beat(rank)
    parent.send(f"report of {rank}")
    parent.recv()


class Looks:
    """Looks at two workers 200 s apart, which `get_on` before each look or not; after `most` looks they report."""

    def __init__(self, monkeypatch, most, *, get_on):
        self._now_s, self._left, self._beat = 0.0, most, get_on
        self._pulse = Pulse(2)
        monkeypatch.setattr(workers, "work", stand_in)
        monkeypatch.setattr(workers, "time", SimpleNamespace(monotonic=lambda: self._now_s))
        monkeypatch.setattr(workers, "wait", self._wait)
        stop = SimpleNamespace(asked=False)
        self.workers = workers.Workers(settings_of(["--workers", "2"]), Shared(Brake(), self._pulse), stop)

    def _wait(self, waiting, timeout_s):
        if self._left < 0:
            return wait(waiting, timeout_s)
        self._now_s += 200.0
        self._left -= 1
        if self._left < 0:
            self.workers.tell("report")
        elif self._beat:
            before = self._pulse.counts()
            self.workers.tell("get on")
            while any(now == then for now, then in zip(self._pulse.counts(), before, strict=True)):
                sleep(0.001)
        return []


def test_workers_that_get_on_may_take_any_time_until_they_report(monkeypatch):
    looks = Looks(monkeypatch, 10, get_on=True)
    try:
        assert looks.workers.collect() == ["report of 0", "report of 1"]
    finally:
        looks.workers.end()


def test_workers_that_do_not_get_on_are_given_up(monkeypatch):
    looks = Looks(monkeypatch, 10, get_on=False)
    try:
        with pytest.raises(workers.WorkerError, match="no sign of life from worker 0, 1 for 300 s"):
            looks.workers.collect()
    finally:
        looks.workers.end()
