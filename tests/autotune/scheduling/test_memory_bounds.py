from dataclasses import replace

import pytest

from autotune.records.measurement import Measured, Setting
from autotune.records.study import Run, TrialRecord
from autotune.scheduling.equivalence import Equivalence
from autotune.scheduling.memory_bounds import MemoryBounds, carry_over_excess
from launchers import Usage
from objectives.base import FailureKind, MemoryNeed, Metric
from tests.support.fakes import failed, took

NEED = MemoryNeed(lambda configuration: configuration.get("copies") and 10.0 * configuration["copies"], room_bytes=100)


def trial(number, copies, outcome):
    configuration = {"copies": copies}
    return TrialRecord(number, configuration, (Run(configuration, number, outcome=outcome),))


def used(peak):
    return replace(took(1.0), usage=Usage(1.0, 1.0, peak))


def bounds(*trials):
    found = MemoryBounds(NEED)
    for each in trials:
        found.learn(each)
    return found


def test_what_needs_as_much_as_a_run_that_lacked_memory_is_not_run():
    found = bounds(trial(0, 1, used(10)), trial(3, 5, failed(FailureKind.OUT_OF_MEMORY)))
    assert "trial 3 (copies=5), which ran out of it" in found.lacks({"copies": 6})
    assert found.lacks({"copies": 5})
    assert not found.lacks({"copies": 4})
    assert not found.lacks({})


def test_a_failure_bounds_what_is_short_of_the_truth_alike_only():
    need = replace(NEED, kind=lambda configuration: configuration.get("precision"))
    found = MemoryBounds(need)
    narrow = {"copies": 5, "precision": "bfloat16"}
    found.learn(TrialRecord(3, narrow, (Run(narrow, 3, outcome=failed(FailureKind.OUT_OF_MEMORY)),)))
    assert found.lacks({"copies": 6, "precision": "bfloat16"})
    assert not found.lacks({"copies": 6, "precision": "float32"})


def test_what_each_process_takes_beside_is_not_that_of_one_process():
    found = MemoryBounds(replace(NEED, processes=lambda configuration: configuration["copies"]))
    found.learn(trial(0, 2, used(60)))  # 40 more than the plan states, by two processes
    assert not found.lacks({"copies": 1, "more": True})
    assert "it would need" in found.lacks({"copies": 7})


def test_a_failure_of_another_kind_or_below_what_worked_bounds_nothing():
    found = bounds(trial(1, 5, failed(FailureKind.TIMED_OUT)), trial(2, 3, failed(FailureKind.OUT_OF_MEMORY)))
    assert found.lacks({"copies": 4})
    found.learn(trial(4, 6, used(60)))
    assert not found.lacks({"copies": 7})


def test_a_run_that_was_stopped_at_a_limit_on_memory_bounds_nothing():
    stopped = replace(failed(FailureKind.OUT_OF_MEMORY), code="qe.memory-limit")
    assert not bounds(trial(1, 3, stopped)).lacks({"copies": 4})


def test_measured_peaks_say_what_the_program_leaves_out():
    assert not bounds().lacks({"copies": 10})
    assert bounds().lacks({"copies": 11})
    assert "and a node has" in bounds(trial(0, 1, used(40)), trial(1, 2, used(70))).lacks({"copies": 8})
    assert not bounds(trial(0, 1, used(5))).lacks({"copies": 10})


def test_what_a_card_holds_is_told_by_its_meter():
    need = replace(NEED, place="card", peak="gpu_peak_memory_bytes")
    on_card = replace(used(90), conditions={"gpu_peak_memory_bytes": 25.0})
    found = MemoryBounds(need)
    found.learn(trial(0, 2, on_card))
    assert not found.lacks({"copies": 9})
    assert "and a card has" in found.lacks({"copies": 10})


def test_what_runs_elsewhere_took_beside_is_counted_until_own_ones_tell():
    setting = Setting("program", "another", "deck", Metric("elapsed_s", "s"))
    known = [
        Measured(setting, {"copies": copies}, 1.0, told=told)
        for copies, told in ((1, {"peak_memory_bytes": 55.0}), (3, {"peak_memory_bytes": 65.0}), (2, {}), (None, {}))
    ]
    assert carry_over_excess(NEED, "another deck", known).excess_bytes == 0.0
    found = MemoryBounds(carry_over_excess(NEED, "deck", known))
    assert not found.lacks({"copies": 6})
    assert found.lacks({"copies": 7})
    found.learn(trial(0, 1, used(20)))
    assert not found.lacks({"copies": 9})


@pytest.mark.parametrize("copies", [2, 9])
def test_a_search_passes_over_what_lacks_memory_and_says_why(copies):
    said = []
    same = Equivalence(None, NEED)
    same.learn(trial(1, 5, failed(FailureKind.OUT_OF_MEMORY)))
    shows_nothing = same.judge(said.append, lambda _: None)
    assert shows_nothing({"copies": copies}) is (copies == 9)
    assert len(said) == (copies == 9)
