"""The page on the architecture and CONTRIBUTING.md name the existing rooms, in one order."""

import re

from tests.docs.page import ROOT, Page

TEXT = Page.read("docs/architecture.md").text
ROOMS = TEXT.partition("## The rooms of")[2].partition("\n## ")[0]
PICTURE = [room for line in re.findall(r"^    ([a-z |]+)$", ROOMS, re.MULTILINE) for room in line.split(" | ")]


def test_the_picture_has_every_room():
    assert sorted(PICTURE) == sorted(path.parent.name for path in (ROOT / "autotune").glob("*/__init__.py"))


def test_contributors_see_the_rooms_in_the_same_order():
    contributing = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert re.findall(r"^      (\w+)/ ", contributing, re.MULTILINE) == PICTURE


def test_the_glossary_is_in_order_and_has_each_word_once():
    glossary = TEXT.partition("## Glossary")[2]
    words = [row.split(",")[0].lower() for row in re.findall(r"^\| \*\*(.+?)\*\* \|", glossary, re.MULTILINE)]
    assert words == sorted(set(words))
