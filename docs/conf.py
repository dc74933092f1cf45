"""The site of the documentation: `./run docs` makes it, by Sphinx, of the pages that are read on their own as well."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "autotune"
project_copyright = "the autotune maintainers"
extensions = ["myst_parser"]
include_patterns = ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "docs/*.md", "docs/*/*.md"]
root_doc = "README"
html_theme = "furo"
html_title = "autotune"
html_copy_source = False
# Anchors as GitHub makes them.
myst_heading_anchors = 6
suppress_warnings = ["misc.highlighting_failure", "myst.header"]

_PAGES = re.compile(r"\]\(((?!https?:)[^)#]+\.md)")
_HEADING = re.compile(r"^\*\*(.+)\*\*$", re.MULTILINE)


def _add_contents(_app: "Sphinx", page: str, source: list[str]) -> None:
    """Give the front page the contents that the index of the documentation lists, by its headings."""
    if page != root_doc:
        return
    parts = _HEADING.split((Path(__file__).parent / "README.md").read_text(encoding="utf-8"))
    listed: set[str] = set()
    trees = [("", ["docs/README", "docs/tutorial", "docs/commands"])]
    trees += [
        (title, [f"docs/{name[:-3]}" for name in _PAGES.findall(text)])
        for title, text in zip(parts[1::2], parts[2::2], strict=True)
    ]
    trees += [("The project", ["CHANGELOG", "CONTRIBUTING", "SECURITY"])]
    for title, pages in trees:
        new = [name for name in dict.fromkeys(pages) if name not in listed]
        listed |= set(new)
        source[0] += "\n".join(["\n```{toctree}", ":hidden:", f":caption: {title}" if title else "", *new, "```\n"])


def setup(app: "Sphinx") -> None:
    """Connect the contents; called by Sphinx."""
    app.connect("source-read", _add_contents)
