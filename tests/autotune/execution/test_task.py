"""What is said of a run whose figures cannot count."""

from dataclasses import replace

import pytest

from autotune.execution.task import check_answer, check_target
from objectives.base import Answer, InvalidResult, Measurement, Metric


@pytest.mark.parametrize(("unit", "words"), [("", "compression is 0.435, the"), ("MB", "compression is 0.435 MB, the")])
def test_another_answer_is_said_with_its_unit_if_it_has_one(unit, words):
    measurement = Measurement({}, Answer("compression", 0.435, 0.02, unit))
    with pytest.raises(InvalidResult) as caught:
        check_answer(measurement, Answer("compression", 0.407, 0.02, unit))
    assert str(caught.value).startswith(f"{words} reference run's is 0.407: they differ by 0.028")


@pytest.mark.parametrize(
    ("tolerance", "relative", "value", "words"),
    [
        (0.0, 1e-6, -200.06, "they differ by 0.0003 (relative), more than 1e-06"),
        (0.0, 1e-6, -200.0001, None),
        (1.0, 1e-6, -200.06, None),
        (0.01, 1e-3, -200.06, None),
        (0.01, 1e-6, -200.06, "they differ by 0.06, more than 0.01"),
        (0.0, 0.0, float("nan"), "they differ by nan, more than 0"),
    ],
)
def test_the_larger_of_two_allowances_holds(tolerance, relative, value, words):
    reference = Answer("energy", -200.0, tolerance, "eV", relative)
    measurement = Measurement({}, replace(reference, value=value))
    if words is None:
        check_answer(measurement, reference)
        return
    with pytest.raises(InvalidResult) as caught:
        check_answer(measurement, reference)
    assert str(caught.value).endswith(words)


@pytest.mark.parametrize(("unit", "words"), [("", "score is 0: what"), ("s", "score is 0 s: what")])
def test_a_target_that_is_not_positive_is_said_with_its_unit_if_it_has_one(unit, words):
    with pytest.raises(InvalidResult) as caught:
        check_target(Measurement({"score": 0.0}), Metric("score", unit))
    assert str(caught.value).startswith(words)
