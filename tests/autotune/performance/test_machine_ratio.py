"""The ratio of two machines, from predictions of each."""

from math import exp, log

import numpy as np
import pytest

from autotune.performance.machine_ratio import machine_ratios
from autotune.performance.regression.prediction import Interval, Prediction, Proposal
from autotune.records.measurement import Setting
from objectives.base import Metric

TOOK = Metric("took_s", "s", kind="time")
NINE_TENTHS = 1.6449  # standard deviations of a normal distribution


def predicted(machine, value, metric=TOOK):
    proposals = () if value == "nothing" else (Proposal({"x": 2}, value),)
    return Prediction(Setting("solver", machine, "small", metric), {"x": 1}, None, proposals)


def around(middle, wide, confidence=0.9):
    return Interval(middle, middle / wide, middle * wide, confidence)


def compared(first, second, metric=TOOK, other=None):
    (found,) = machine_ratios(
        {"mars": predicted("mars", first, metric), "moon": predicted("moon", second, other or metric)}
    )
    return found


def test_the_first_machine_is_compared_with_each_of_the_others():
    found = machine_ratios(
        {name: predicted(name, around(value, 1.1)) for name, value in (("a", 1.0), ("b", 2.0), ("c", 4.0))}
    )
    assert [(one.machines, round(one.ratio.value, 9)) for one in found] == [(("a", "b"), 2.0), (("a", "c"), 4.0)]


def test_the_interval_holds_the_ratio_of_two_independent_errors_as_often_as_it_says():
    found = compared(around(2.0, 1.3), around(6.0, 1.5)).ratio
    assert found.value == pytest.approx(3.0)
    rng = np.random.default_rng(1)
    first, second = (rng.normal(0.0, log(wide) / NINE_TENTHS, 100_000) for wide in (1.3, 1.5))
    ratios = 3.0 * np.exp(second - first)
    assert np.mean((found.low <= ratios) & (ratios <= found.high)) == pytest.approx(0.9, abs=0.01)


def test_it_promises_no_more_than_the_less_certain_of_the_two():
    found = compared(around(2.0, 1.0), around(6.0, 1.5, confidence=0.5)).ratio
    assert found.confidence == 0.5
    assert (found.low, found.high) == pytest.approx((2.0, 4.5))


def test_of_a_rate_more_is_better():
    rate = Metric("rate", "1/s", direction="maximize", kind="rate")
    assert compared(around(2.0, 1.1), around(6.0, 1.1), rate).ratio.value == pytest.approx(1 / 3)


def test_it_is_said_in_a_sentence():
    half = exp(log(1.1) * 2**0.5)
    said = compared(around(2.0, 1.1), around(6.0, 1.1)).sentence()
    assert said == f"mars is 3 times as fast as moon ({3 / half:.3f} to {3 * half:.3f}, 90%)"
    unsure = compared(around(2.0, 1.5), around(2.2, 1.5)).sentence()
    assert unsure.endswith("; which of them is better is not known: the interval holds 1")


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        ("nothing", around(1.0, 1.1), "nothing can be proposed for mars"),
        (around(1.0, 1.1), None, "took_s on moon is not known"),
        (around(1.0, 9.0), around(1.0, 9.0), "any ratio from 0.0447 to 22.4 is possible"),
    ],
)
def test_what_is_not_known_has_a_reason(first, second, why):
    found = compared(first, second)
    assert found.sentence() == f"how mars compares with moon is not known: {why}"
    assert found.to_dict() == {"machines": ["mars", "moon"], "metric": "took_s", "ratio": None, "why": why}


def test_metrics_that_do_not_compare_give_no_ratio():
    found = compared(around(1.0, 1.1), around(1.0, 1.1), other=Metric("cpu_s", "s", kind="time"))
    assert found.why == "mars is judged by took_s, moon by cpu_s"
