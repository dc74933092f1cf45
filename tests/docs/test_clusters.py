"""The statements about site files on the page about clusters are true."""

import re

from autotune.batch.site_file import SiteFile, find_cluster
from tests.docs.front_pages import CLUSTERS
from tests.docs.page import Page

PAGE = Page.read(CLUSTERS)


def test_the_site_file_of_the_document(tmp_path, monkeypatch):
    (example,) = (block.text for block in PAGE.blocks if block.language == "toml")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    (tmp_path / "autotune").mkdir()
    (tmp_path / "autotune" / "site.toml").write_text(example, encoding="utf-8")
    site, _, _ = find_cluster(None)
    assert (site.account, site.queue, site.cores_per_node) == ("ab12", "normal", 48)


def test_the_table_of_the_site_file_is_complete():
    described = set(re.findall(r"^\| (`.*?) \|", PAGE.text, re.MULTILINE))
    named = {key for cell in described for key in re.findall(r"`(\w+)`", cell)}
    assert named == {*SiteFile.model_fields, "base"} - {"name"}
