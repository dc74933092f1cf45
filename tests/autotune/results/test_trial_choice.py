"""The choice of trials and their order."""

import pytest

from autotune.errors import AutotuneError
from autotune.results.trial_choice import TrialChoice
from objectives.base import FailureKind
from tests.autotune.pictures.studies import summary, trial
from tests.support.fakes import capped, failed, took

FOUND = summary(
    trial(0, took(4.0), np=16, blas="slow", bind=False),
    trial(1, took(2.0), took(2.2), np=8, blas="fast", bind=True),
    trial(2, capped(5.0), np=4, blas="fast", bind=True),
    trial(3, failed(FailureKind.OUT_OF_MEMORY), np=2, bind=False),
    trial(4, took(3.0), np=1, bind=False),
)


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        ("", [0, 1, 2, 3, 4]),
        ("np >= 8", [0, 1]),
        ("np>2,np<16", [1, 2]),
        ("blas = fast", [1, 2]),
        ("blas = 'Fast'", [1, 2]),
        ("blas != fast", [0, 3, 4]),
        ("blas = unset", [3, 4]),
        ("blas != unset", [0, 1, 2]),
        ("value < 3.5", [1, 4]),
        ("bound > 4", [2]),
        ("wall_s <= 3, bind = false", [4]),
        ("bind = yes", [1, 2]),
        ("runs = 2", [1]),
        ("np = many", []),
    ],
)
def test_trials_are_chosen_by_parameters_and_figures(where, numbers):
    assert [one.number for one in TrialChoice.of(where).trials(FOUND)] == numbers


def test_trials_are_chosen_by_their_state():
    assert [one.number for one in TrialChoice.of("", "capped").trials(FOUND)] == [2]
    assert [one.number for one in TrialChoice.of("", "out of memory").trials(FOUND)] == [3]


@pytest.mark.parametrize(
    ("sort", "down", "numbers"),
    [
        ("trial", True, [4, 3, 2, 1, 0]),
        ("value", False, [1, 4, 0, 2, 3]),
        ("value", True, [0, 4, 1, 2, 3]),
        ("np", False, [4, 3, 2, 1, 0]),
        ("blas", False, [1, 2, 0, 3, 4]),
        ("state", False, [2, 0, 1, 4, 3]),
    ],
)
def test_trials_without_a_value_come_last_in_either_order(sort, down, numbers):
    assert [one.number for one in TrialChoice.of("", sort=sort, down=down).trials(FOUND)] == numbers


@pytest.mark.parametrize(
    ("where", "sort", "words"),
    [
        ("np is small", "trial", "where: 'np is small' is not a comparison: write a name, one of <= >= != == = < >"),
        ("np >=", "trial", "where: 'np >=' is not a comparison"),
        ("1 < np < 4", "trial", "where: '1 < np < 4' is not a comparison"),
        ("blass = fast", "trial", "where: 'blass' is neither a parameter nor a figure (did you mean 'blas'?)"),
        ("", "blass", "sort: 'blass' is neither a parameter nor a figure"),
    ],
)
def test_an_unknown_name_is_an_error_that_lists_the_known_ones(where, sort, words):
    with pytest.raises(AutotuneError) as refused:
        TrialChoice.of(where, sort=sort).trials(FOUND)
    assert words in str(refused.value)
