"""What the service answers: values that JSON can hold, and `~` for the home folder."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.service.json_values import json_value, with_tilde

HOME = str(Path.home())


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("mpirun /usr/bin/pw.x -inp {home}/x/pw.in", "mpirun /usr/bin/pw.x -inp ~/x/pw.in"),
        ("PATH=/opt/a/bin:{home}", "PATH=/opt/a/bin:~"),
        ("no study in sqlite:///{home}/autotune.db", "no study in sqlite:///~/autotune.db"),
        ("mpicc -I{home}/include", "mpicc -I~/include"),
        ("/srv{home}/x and {home}s/x", "/srv{home}/x and {home}s/x"),
    ],
)
def test_the_home_folder_is_a_tilde(given, expected):
    assert with_tilde(given.format(home=HOME)) == expected.format(home=HOME)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text(), inner),
)


@given(json_like)
def test_whatever_a_study_holds_can_be_sent(value):
    json.dumps(json_value(value), allow_nan=False)


def test_values_are_changed_everywhere():
    value = {f"{HOME}/b": [{"argv": (f"{HOME}/x", 1, None, float("nan"))}]}
    assert json_value(value) == {"~/b": [{"argv": ["~/x", 1, None, None]}]}
