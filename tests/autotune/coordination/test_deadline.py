"""No run starts that would not end in time, in tuning and in comparisons."""

import time
from datetime import UTC, datetime

import pytest

from autotune.coordination.deadline import Deadline, expected_s, parse_end
from autotune.coordination.run_gate import RunGate
from autotune.coordination.run_manager import RunManager
from autotune.errors import ExitCode, UnfinishedError
from autotune.records.study import Purpose
from autotune.search.asker import Asker
from autotune.search.registry import sampler_of
from autotune.storage.study_store import StudyStore
from autotune.tuning.loop import TuningLoop
from tests.support.contests import rounds_of
from tests.support.fakes import PaperExecutor, bowl, definition, small_space, study_file
from tests.support.managers import managed

HOUR_S = 3600.0


class SlowExecutor(PaperExecutor):
    """Every run takes five minutes of a clock of its own."""

    def __init__(self):
        super().__init__(bowl)
        self.now = 0.0

    def wait(self, timeout_s):
        ended = super().wait(timeout_s)
        self.now += 300.0 * len(ended)
        return ended


def manager(folder, executor) -> RunManager:
    deadline = Deadline(HOUR_S, clock=lambda: executor.now)
    return managed(executor, folder, gate=RunGate(deadline=deadline, slowest_s=300.0))


def studied():
    space = small_space()
    study = study_file(budget={"trials": 30, "workers": 1})
    store = StudyStore.in_memory(definition(space))
    return Asker(store, sampler_of(space, study.sampler)), study, store


def test_a_margin_is_kept_of_a_minute_or_of_two_percent():
    assert Deadline(HOUR_S, lambda: 0.0).margin_s == pytest.approx(72.0)
    assert Deadline(1800.0, lambda: 0.0).margin_s == 60.0
    assert Deadline(60.0, lambda: 0.0).margin_s == pytest.approx(6.0)
    assert Deadline(0.0, lambda: 10.0).allows(None) is False


def test_a_wall_clock_that_is_set_gives_no_time_and_takes_none(monkeypatch):
    began_at = time.time()
    deadline = Deadline(began_at + HOUR_S)
    for jump_s in (-86_400.0, 3 * HOUR_S):
        monkeypatch.setattr(time, "time", lambda jump_s=jump_s: began_at + jump_s)
        assert deadline.left_s == pytest.approx(HOUR_S - 72.0, abs=60.0)


def test_tuning_stops_before_the_run_that_would_be_too_late(tmp_path):
    asker, study, store = studied()
    executor = SlowExecutor()
    with pytest.raises(UnfinishedError, match="too soon for another run") as caught:
        TuningLoop(asker, manager(tmp_path, executor), study).tune()
    assert caught.value.exit_code is ExitCode.UNFINISHED == 7
    # 12 times five minutes are an hour, but for the margin
    assert len(executor.launched) == 11
    assert len(store.runs()) == 11


def test_a_limit_that_is_lower_than_the_slowest_run_counts():
    assert expected_s(None, None) is None
    assert expected_s(100.0, None) == expected_s(100.0, 300.0) == expected_s(None, 100.0) == 100.0


def test_a_run_that_takes_too_long_is_not_waited_for(tmp_path):
    asker, study, store = studied()
    executor = SlowExecutor()

    def hang(timeout_s):
        executor.now += 600.0
        return []

    executor.wait = hang
    with pytest.raises(UnfinishedError):
        TuningLoop(asker, manager(tmp_path, executor), study).tune()
    assert len(executor.launched) == 1
    assert store.runs() == []


def test_comparisons_stop_as_well(tmp_path):
    _, _, store = studied()
    executor = SlowExecutor()
    with pytest.raises(UnfinishedError):
        rounds_of(store, manager(tmp_path, executor)).run_until(50)
    assert len(executor.launched) == len(store.runs()) == 11


def test_a_run_of_unknown_length_may_start_and_without_a_deadline_all_may(tmp_path):
    executor = SlowExecutor()
    executor.now = HOUR_S - 100.0
    used = manager(tmp_path, executor)
    used.gate.slowest_s = None
    planned = used.prepare(0, Purpose({"np": 1}), "0")
    # The margin was reckoned from the time that was left when the session began.
    assert used.start(planned) is not None
    used.gate.slowest_s = 300.0
    assert used.start(planned) is None
    used.gate.deadline = None
    assert used.start(planned) is not None
    used.check(idle=True)


NOW = datetime(2026, 11, 22, 16, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("17:30", "2026-11-22T17:30:00+00:00"),
        ("9:05", "2026-11-23T09:05:00+00:00"),
        ("2026-11-22T18:00", "2026-11-22T18:00:00+00:00"),
        ("2026-11-22T20:00:00+02:00", "2026-11-22T18:00:00+00:00"),
    ],
)
def test_times(text, end):
    assert parse_end(text, NOW) == datetime.fromisoformat(end)


@pytest.mark.parametrize(("text", "said"), [("soon", "is not a time"), ("25:00", "not a time"), ("2026-01-01", "past")])
def test_what_is_no_time_to_come_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse_end(text, NOW)
