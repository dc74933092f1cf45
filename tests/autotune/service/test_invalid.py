"""Invalid fields in words: what was given and the rule, under the field's own name."""

import pytest
from pydantic import ValidationError

from autotune.service.invalid import field_errors
from autotune.service.models.orders import NewStudy
from autotune.service.routes.asking import Tell
from autotune.service.routes.hints import NewHint
from autotune.service.routes.predicting import Question


def errors_of(model, **fields):
    with pytest.raises(ValidationError) as caught:
        model(**fields)
    return field_errors(caught.value.errors())


def test_a_field_of_several_kinds_has_one_sentence():
    assert errors_of(NewStudy, study="qe", trials="abc") == {
        "trials": "'abc' was given; it must be a whole number or 'auto'"
    }
    assert errors_of(NewStudy, study="qe", trials=0) == {"trials": "0 was given; it must be at least 1 or 'auto'"}
    assert errors_of(NewStudy, study="qe", workers=0) == {"workers": "0 was given; it must be at least 1"}


def test_a_pattern_is_said_in_words():
    assert errors_of(NewStudy, study="qe", name="my study") == {
        "name": "'my study' was given; it must be a name of letters, digits and . _ -, which begins with a letter or a "
        "digit"
    }


def test_what_is_missing_or_unknown_is_said():
    assert errors_of(NewStudy, command="rm") == {"study": "it is missing", "command": "there is no such field"}


def test_of_many_unknown_fields_the_first_are_named():
    found = errors_of(NewStudy, study="qe", **{f"key{number}": 1 for number in range(500)})
    assert list(found)[:2] == ["key0", "key1"]
    assert list(found)[19:] == ["key19", "480 more"]


def test_of_many_wrong_values_each_rule_is_said_once():
    assert errors_of(Tell, lease="x", metrics={f"metric{number}": "fast" for number in range(90)}) == {
        "metrics": "'fast' was given; it must be a number"
    }


@pytest.mark.parametrize("depth", [0, 1, 2])
def test_a_request_of_many_values_is_refused_before_they_are_validated(depth):
    given = dict.fromkeys(map(str, range(4000)), "wrong")
    for _ in range(depth):
        given = {"configuration": [given]}
    assert errors_of(NewHint, **given) == {"the request": "it has too many values: at most 600 are allowed"}


def test_a_request_of_as_many_values_as_it_may_have_is_valid():
    assert len(NewHint(configuration=dict.fromkeys(map(str, range(500)), 1)).configuration) == 500


def test_what_has_no_words_keeps_those_of_pydantic_and_long_values_are_cut():
    found = field_errors([{"loc": ("body", 3), "type": "json_invalid", "msg": "JSON decode error", "input": {}}])
    assert found == {"the request": "JSON decode error"}
    assert len(errors_of(Question, study="x" * 5000)["study"]) < 150
