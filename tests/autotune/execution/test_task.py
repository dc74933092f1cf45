"""What is said of a run whose figures cannot count."""

import pytest

from autotune.execution.task import check_answer, check_target
from objectives.base import Answer, InvalidResult, Measurement, Metric


@pytest.mark.parametrize(("unit", "words"), [("", "compression is 0.435, the"), ("MB", "compression is 0.435 MB, the")])
def test_another_answer_is_said_with_its_unit_if_it_has_one(unit, words):
    measurement = Measurement({}, Answer("compression", 0.435, 0.02, unit))
    with pytest.raises(InvalidResult) as caught:
        check_answer(measurement, Answer("compression", 0.407, 0.02, unit))
    assert str(caught.value).startswith(f"{words} reference run's is 0.407: they differ by 0.028")


@pytest.mark.parametrize(("unit", "words"), [("", "score is 0: what"), ("s", "score is 0 s: what")])
def test_a_target_that_is_not_positive_is_said_with_its_unit_if_it_has_one(unit, words):
    with pytest.raises(InvalidResult) as caught:
        check_target(Measurement({"score": 0.0}), Metric("score", unit))
    assert str(caught.value).startswith(words)
