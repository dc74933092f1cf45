"""The stored form of values: storages hold it, so not a byte of it may change."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.comparison.findings import Ablation, InputComparison
from autotune.performance.warm_start import WarmStart
from autotune.records.hint import Hint
from autotune.records.measurement import Measured, Setting
from autotune.records.outcome import Outcome
from autotune.scheduling.stopping import StoppingForecast
from autotune.statistics.verdict import Verdict
from autotune.studyfile.definition import Definition
from launchers import Usage
from objectives.base import Answer, FailureKind, Metric

CLASSES = {
    one.__name__: one
    for one in (
        Ablation,
        Definition,
        Hint,
        InputComparison,
        Measured,
        Outcome,
        StoppingForecast,
        Setting,
        Verdict,
        WarmStart,
    )
}
GOLDEN = [line.split(" ", 1) for line in Path(__file__).with_name("stored.golden").read_text("utf-8").splitlines()]


@pytest.mark.parametrize(("name", "text"), GOLDEN)
def test_the_stored_form_is_what_it_was(name, text):
    value = CLASSES[name].from_dict(json.loads(text))
    assert json.dumps(value.to_dict()) == text
    assert CLASSES[name].from_dict(value.to_dict()) == value


def test_every_class_has_a_stored_form_on_record():
    assert {name for name, _ in GOLDEN} == set(CLASSES)


NUMBERS = st.floats(allow_nan=False)
VALUES = st.one_of(st.integers(), NUMBERS, st.booleans(), st.text())
FACTS = st.dictionaries(st.text(), VALUES, max_size=3)
ANSWERS = st.builds(Answer, st.text(), NUMBERS, NUMBERS, st.text())
TIMELINES = st.lists(st.tuples(st.integers(), NUMBERS), max_size=3).map(tuple)
FAILED = st.builds(Outcome, failure=st.sampled_from(FailureKind), message=st.text(), attempts=st.integers(1, 9))
COMPLETE = st.builds(
    Outcome,
    metrics=st.dictionaries(st.text(), NUMBERS, min_size=1, max_size=3),
    answer=st.none() | ANSWERS,
    details=st.dictionaries(st.text(), st.none() | VALUES | st.lists(VALUES, max_size=2), max_size=3),
    timeline=TIMELINES,
    usage=st.builds(Usage, NUMBERS, NUMBERS, st.integers()),
)
MEASURED = st.builds(
    Measured,
    st.builds(Setting, st.text(), st.text(), st.text(), st.just(Metric("wall_s", "s")), FACTS, FACTS),
    FACTS,
    value=st.none() | NUMBERS,
    default=st.booleans(),
)


@given(st.one_of(FAILED, COMPLETE, MEASURED))
def test_what_is_read_is_what_was_stored_with_the_same_types(value):
    text = json.dumps(value.to_dict())
    read = type(value).from_dict(json.loads(text))
    assert read == value
    assert json.dumps(read.to_dict()) == text


def test_what_is_not_of_the_class_is_refused():
    stored = WarmStart(why="so").to_dict()
    with pytest.raises(ValueError, match="no stored WarmStart: later: "):
        WarmStart.from_dict(stored | {"later": 1})
    with pytest.raises(ValueError, match=r"speed_up.*Field required"):
        WarmStart.from_dict({"proposals": [], "speed_up": [1.0, 2.0], "why": ""})
