"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.durations import parse_duration_s

COUNT = st.integers(0, 500)


@given(COUNT, COUNT, COUNT, COUNT)
def test_the_units_add_up(days, hours, minutes, seconds):
    text = f"{days}d{hours}h{minutes}m{seconds}s"
    total = ((days * 24 + hours) * 60 + minutes) * 60 + seconds
    if total:
        assert parse_duration_s(text) == total


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1h30m", 5400), ("1.5h", 5400), (" 15m ", 900), ("2d", 172800)]
)
def test_short_forms(text, seconds):
    assert parse_duration_s(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "0", "0s", "-1h", "1h 30m", "1h30", "2d12", "1m30", "long", "inf", "9" * 400 + "d"]
)
def test_what_is_none(text):
    with pytest.raises(ValueError, match="not a duration"):
        parse_duration_s(text)
