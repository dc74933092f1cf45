"""The README is short, and what the first pages say of functions and of the shipped study is so."""

import re
import tomllib

from spaces.expressions.functions import FUNCTIONS
from tests.docs.front_pages import SET_UP
from tests.docs.page import ROOT, Page

README_LINES = 100


def test_the_readme_is_short_enough_to_be_read():
    assert len(Page.read("README.md").text.splitlines()) <= README_LINES


def test_the_first_two_commands_are_those_of_the_readme():
    assert SET_UP == ["./run study qe --trials 50", "./run test"]


def test_the_page_on_study_files_names_every_function():
    assert set(FUNCTIONS) <= set(re.findall(r"`(?:in )?(\w+)[`(]", Page.read("docs/study-files.md").text))


def test_the_shipped_study_is_commented_and_valid_toml():
    text = (ROOT / "studies" / "qe.toml").read_text(encoding="utf-8")
    assert text.startswith("#")
    assert tomllib.loads(text)["objective"] == "qe"
