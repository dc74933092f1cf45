"""Files that others wrote are read in bounded time and depth, and refused in words."""

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.base import PlanError
from objectives.replay import delimited
from objectives.replay.options import ReplayOptions
from objectives.toml_text import MAX_BYTES, parse_toml, read_toml_text

DEEP = [
    "a = " + "[" * 5000 + "]" * 5000,
    "a" + ".a" * 20_000 + " = 1",
    "a = " + "{a = " * 40 + "1" + "}" * 40,
    "[" + "a . " * 50 + "b]",
]


@pytest.mark.parametrize("text", DEEP, ids=["lists", "key", "tables", "header"])
def test_what_is_nested_very_deep_is_not_toml_to_us(text):
    with pytest.raises(tomllib.TOMLDecodeError, match="nested more than 32 deep"):
        parse_toml(text)


def test_sentences_and_paths_with_dots_are_no_deep_keys():
    text = 'a = """' + "A sentence. " * 100 + "\n" + "." * 300 + '"""\nb.c.d = \'x.y.z\''
    assert parse_toml(text) == tomllib.loads(text)


@given(text=st.text(alphabet="ab.=[]{}\"', 1\n", max_size=60))
def test_any_text_says_what_it_says_or_is_refused(text):
    try:
        expected = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        with pytest.raises(tomllib.TOMLDecodeError):
            parse_toml(text)
    else:
        assert parse_toml(text) == expected


def test_a_huge_file_is_not_read_whole(tmp_path):
    path = tmp_path / "huge.toml"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES * 1000)
    with pytest.raises(tomllib.TOMLDecodeError, match="larger than 1 MiB"):
        read_toml_text(path)


def test_a_table_with_too_many_lines_is_refused(monkeypatch):
    monkeypatch.setattr(delimited, "_MOST_LINES", 10)
    text = "x,t\n" + "1,2\n" * 1000
    assert len(delimited.read_lines(text)[1]) == 11
    with pytest.raises(PlanError, match="the table has more than 10 lines"):
        delimited.read_csv(text, ReplayOptions(table="here", metric="t", parameters=["x"]))
