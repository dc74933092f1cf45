"""The load generator of `inference` and `ensemble`: arrival of requests, their answers, and the highest load."""

import argparse
import re
import time

import numpy as np
import pytest

from tests.support.study_programs import loaded


@pytest.fixture(scope="module")
def load():
    return loaded("load")


def service(load, *runs, batch=1, wait_s=0.0, limit_s=1.0, inputs=None):
    """Return a service of one model with an instance for each function."""
    inputs = np.zeros((1, 1)) if inputs is None else inputs
    return load.Service([load.Model([load.Instance(run) for run in runs], inputs, batch, wait_s)], limit_s)


def slow(seconds):
    def run(batch):
        time.sleep(seconds)
        return batch

    return run


def test_requests_come_when_the_seed_says_and_as_many_as_the_rate_says(load):
    due = load.arrivals(50, 4, seed=3)
    assert len(due) == 200
    assert due == sorted(due)
    assert due[0] >= 0
    assert due[-1] <= 4
    assert due == load.arrivals(50, 4, seed=3)
    assert due != load.arrivals(50, 4, seed=4)


def test_gaps_between_requests_vary_as_those_of_a_poisson_process_do(load):
    gaps = np.diff(load.arrivals(1000, 5, seed=1))
    assert np.std(gaps) / np.mean(gaps) == pytest.approx(1.0, abs=0.1)


def test_a_percentile_is_a_latency_that_was_there(load):
    values = [float(value) for value in range(100, 0, -1)]
    assert load.percentile(values, 0.5) == 50.0
    assert load.percentile(values, 0.99) == 99.0
    assert load.percentile([7.0], 0.99) == 7.0


def test_a_batch_goes_when_it_is_full_or_its_first_has_waited_or_no_more_come(load):
    assert load.hold_s(4, 0.0, 4, 0.01, more_coming=True) == 0.0
    assert load.hold_s(1, 0.02, 4, 0.01, more_coming=True) == 0.0
    assert load.hold_s(1, 0.0, 4, 0.01, more_coming=False) == 0.0
    assert load.hold_s(1, 0.004, 4, 0.01, more_coming=True) == pytest.approx(0.006)


def test_each_request_gets_the_answer_to_its_own_input_from_whatever_batch(load):
    inputs = np.arange(5.0).reshape(5, 1)
    sizes = []

    def doubled(batch):
        sizes.append(len(batch))
        return 2.0 * batch

    due_s = [0.0005 * number for number in range(40)]
    window = service(load, doubled, doubled, batch=4, wait_s=0.002, inputs=inputs).window(due_s, 30.0)
    assert len(window.latencies_s) == sum(sizes) == 40
    assert max(sizes) <= 4
    assert [float(window.answers[number][0]) for number in range(40)] == [2.0 * (number % 5) for number in range(40)]
    assert load.agreement(window.answers, 2.0 * inputs) == 100.0
    assert load.agreement(window.answers, 4.0 * inputs) == pytest.approx(50.0)


def test_a_request_of_several_models_is_answered_when_the_last_has_answered_by_the_mean_of_all(load):
    inputs = np.arange(3.0).reshape(3, 1)
    fast = load.Model([load.Instance(lambda batch: 4.0 * batch)], inputs)
    late = load.Model([load.Instance(slow(0.01))], inputs, batch=2)
    window = load.Service([fast, late], 1.0).window([0.0] * 6, 30.0)
    assert [float(window.answers[number][0]) for number in range(6)] == [2.5 * (number % 3) for number in range(6)]
    assert all(latency >= 0.01 * (number // 2 + 1) for number, latency in enumerate(window.latencies_s))


def test_a_request_that_waits_for_others_took_so_much_longer(load):
    window = service(load, slow(0.01)).window([0.0] * 4, 30.0)
    assert all(latency >= 0.01 * (number + 1) for number, latency in enumerate(window.latencies_s))
    assert window.took_s >= 0.04


def test_an_overloaded_service_is_given_up_and_what_waited_counts(load):
    window = service(load, slow(0.1)).window([0.0] * 50, 0.1)
    assert len(window.answers) < 50
    assert len(window.latencies_s) == 50
    assert window.latencies_s[-1] >= 0.2
    assert not window.keeps(0.1)


def test_a_probe_ends_when_it_is_sure_that_too_many_are_late(load):
    served = []

    def late(batch):
        time.sleep(0.02)
        served.extend(batch)
        return batch

    due_s = [0.001 * number for number in range(5000)]
    window = service(load, late, limit_s=0.01).window(due_s, 5.0, probe=True)
    assert not window.keeps(0.01)
    assert len(served) < 100


def test_an_engine_that_fails_ends_the_run(load):
    def broken(batch):
        raise ValueError("no such shape")

    with pytest.raises(ValueError, match="no such shape"):
        service(load, broken).window([0.0, 0.001], 30.0)


@pytest.mark.parametrize("start", [1.5, 90.0, 100.0, 5000.0])
def test_the_highest_load_is_found_from_wherever_the_search_starts(load, start):
    tried = []

    def is_fast_enough(rate):
        tried.append(rate)
        return rate <= 100.0

    found = load.find_highest_rate(is_fast_enough, start)
    assert 100.0 / load.FINE <= found <= 100.0
    assert len(tried) < 16


def test_a_service_that_bears_no_load_at_all_has_none(load):
    assert load.find_highest_rate(lambda rate: False, 1000.0) == 0.0


def test_a_pause_of_the_machine_does_not_make_a_load_too_high(load, monkeypatch):
    monkeypatch.setattr(load, "LIMITS", 2.0)
    pauses = iter([0.3])

    def paused_once(batch):
        time.sleep(next(pauses, 0.0))
        return batch

    tried = []

    class Recorded(load.Service):
        def window(self, due_s, seconds, *, probe=False):
            tried.append(len(due_s))
            if len(due_s) > 200:
                return load.Window([0.0], [9.0], {})
            return super().window(due_s[:2], seconds, probe=probe)

    model = load.Model([load.Instance(paused_once)], np.zeros((1, 1)))
    Recorded([model], 0.25).highest_load(400.0, seed=0)
    # A pause of this machine may delay one more of 200.
    assert tried[:2] == [200, 200]
    assert next(count for count in tried if count != 200) == 400


@pytest.mark.slow
@pytest.mark.parametrize(("rate", "offered"), [(None, 160), (30.0, 30)])
def test_what_is_measured_has_headroom_below_the_highest_load_unless_the_load_is_given(
    load, monkeypatch, capsys, rate, offered
):
    monkeypatch.setattr(load.Service, "highest_load", lambda self, start, seed: 200.0)
    monkeypatch.setattr(load, "COUNTED", 100)
    inputs = np.arange(1.0, 3.0).reshape(2, 1)
    asked = argparse.Namespace(rate=rate, seconds=1.0, headroom=0.2)
    load.measure(service(load, lambda batch: batch, limit_s=0.05, inputs=inputs), inputs, asked)
    said = capsys.readouterr().out
    assert re.search(rf"^answered {offered} of {offered} requests", said, re.MULTILINE)
    assert ("the highest load is 200.0 requests/s" in said) is (rate is None)
    assert re.search(r"^agreement 100\.000 %", said, re.MULTILINE)


def test_a_pause_of_the_machine_spoils_one_window_of_three(load, monkeypatch, capsys):
    p99_s = iter([0.353, 0.004, 0.005])
    monkeypatch.setattr(
        load.Service, "window", lambda self, due_s, seconds: load.Window([0.0], [next(p99_s)], {0: np.ones(1)})
    )
    load.measure(service(load, lambda batch: batch), np.ones((1, 1)), argparse.Namespace(rate=1.0, seconds=1.0))
    assert "p99 5.000 ms" in capsys.readouterr().out.splitlines()


def test_answers_are_judged_in_every_window(load, monkeypatch, capsys):
    answers = iter([0.75, 1.0, 1.0])
    monkeypatch.setattr(
        load.Service, "window", lambda self, due_s, seconds: load.Window([0.0], [0.1], {0: np.full(1, next(answers))})
    )
    load.measure(service(load, lambda batch: batch), np.ones((1, 1)), argparse.Namespace(rate=1.0, seconds=1.0))
    assert "agreement 75.000 %" in capsys.readouterr().out.splitlines()


def test_one_wrong_answer_among_many_that_are_right_ends_the_run(load, monkeypatch):
    answers = dict.fromkeys(range(10_000), np.ones(1)) | {77: np.zeros(1)}
    assert load.agreement(answers, np.ones((1, 1))) == 99.0
    monkeypatch.setattr(load.Service, "window", lambda self, due_s, seconds: load.Window([0.0], [0.1], answers))
    with pytest.raises(SystemExit, match="error: the answer to request 77 is off by 100% of its size"):
        load.measure(service(load, lambda batch: batch), np.ones((1, 1)), argparse.Namespace(rate=1.0, seconds=1.0))


@pytest.mark.parametrize(
    ("highest_rate", "limit_s", "expected"), [(2000.0, 0.05, 1.0), (2000.0, 0.2, 4.0), (50.0, 0.05, 10.0)]
)
def test_a_window_is_long_beside_the_limit_and_has_requests_enough_to_tell_99_percent(
    load, monkeypatch, highest_rate, limit_s, expected
):
    lasted = []

    def window(self, due_s, seconds):
        lasted.append(seconds)
        return load.Window([0.0], [0.1], {0: np.ones(1)})

    monkeypatch.setattr(load.Service, "highest_load", lambda self, start, seed: highest_rate)
    monkeypatch.setattr(load.Service, "window", window)
    asked = argparse.Namespace(rate=None, seconds=1.0, headroom=0.2)
    load.measure(service(load, lambda batch: batch, limit_s=limit_s), np.ones((1, 1)), asked)
    assert lasted == [expected] * load.WINDOWS


def test_a_load_that_waits_longer_and_longer_is_not_borne_however_long_the_limit(load, monkeypatch):
    probed = []

    def window(self, due_s, seconds, *, probe):
        probed.append(seconds)
        return load.Window([0.0], [0.0], {})

    monkeypatch.setattr(load.Service, "window", window)
    monkeypatch.setattr(load, "find_highest_rate", lambda is_fast_enough, start: is_fast_enough(start))
    for limit_s in (0.02, 0.2):
        service(load, lambda batch: batch, limit_s=limit_s).highest_load(2000.0, seed=0)
    assert probed == [0.5, 2.0]
