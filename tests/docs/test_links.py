"""No link of the documentation is dead, and no page is without a link."""

import re

import pytest

from tests.docs.page import PAGES, ROOT

LINK = re.compile(r"\]\(\s*([^)\s]+)\s*\)")
CHECKED = {**PAGES, **{name: ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md")}}
LISTED = sorted(name for name in PAGES if name not in {"README.md", "docs/README.md"})


def links(name):
    """Return the links of a page, without those in code."""
    return LINK.findall(re.sub(r"`[^`\n]*`", "", prose(CHECKED[name])))


def prose(path):
    """Return a page without its blocks of code."""
    return re.sub(r"```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(path):
    """Return the names by which headings of a page can be linked to, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_links_lead_somewhere(name):
    for link in links(name):
        if re.match(r"https?://", link):
            continue
        path, _, anchor = link.partition("#")
        target = (CHECKED[name].parent / path) if path else CHECKED[name]
        assert target.exists(), f"{name}: {link}"
        assert not anchor or anchor in anchors(target), f"{name}: {link}: no such heading"


@pytest.mark.parametrize("name", sorted(CHECKED))
def test_no_section_stands_twice(name):
    headings = re.findall(r"^#+ .+$", prose(CHECKED[name]), re.MULTILINE)
    assert len(headings) == len(set(headings)), name


@pytest.mark.parametrize("name", LISTED)
def test_the_index_lists_every_page(name):
    listed = {(ROOT / "docs" / link.partition("#")[0]).resolve() for link in links("docs/README.md")}
    assert PAGES[name] in listed, f"docs/README.md has no link to {name}"
