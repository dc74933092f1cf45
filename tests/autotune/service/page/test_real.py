"""The page on the real service."""

import re

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import PATIENCE_MS
from tests.autotune.service.serving import SLEEPY, serving

pytestmark = [pytest.mark.slow, pytest.mark.cores(1)]


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("served")) as running:
        # A hundred configurations: a study of them does not end before the page pauses it.
        (running.folder / "catalogue" / "sleepy.toml").write_text(SLEEPY.replace("high = 2", "high = 9"))
        yield running


@pytest.fixture
def patience():
    """Real runs take their time."""
    expect.set_options(timeout=6 * PATIENCE_MS)
    yield
    expect.set_options(timeout=PATIENCE_MS)


def test_the_page_is_served_with_all_that_it_needs(service, new_page):
    page, _ = new_page(service.url + "/", "#token=" + service.header.rpartition(" ")[2])
    expect(page.get_by_text("No study yet.")).to_be_visible()
    expect(page.locator("#about")).to_have_text(re.compile(r"^autotune \d"))
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Study").select_option("sleepy")
    expect(dialog.get_by_text("Sleeps for longer and shorter")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_role("link", name="Predictions").click()
    expect(page.get_by_label("Machine").locator("option", has_text="gadi").first).to_be_attached()


@pytest.mark.full
def test_a_study_is_started_watched_paused_resumed_and_stopped(service, new_page, keep, patience):
    page, guard = new_page(service.url + "/", "#token=" + service.header.rpartition(" ")[2])
    page.set_default_timeout(6 * PATIENCE_MS)
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Study").select_option("sleepy")
    dialog.get_by_label("Name").fill("mine")
    dialog.get_by_label("Trials").fill("90")
    dialog.get_by_role("button", name="Start").click()
    state = page.locator(".badge")
    expect(page.get_by_role("heading", name="mine", level=1)).to_be_visible()
    expect(page.locator(".standing .figures")).to_have_text(re.compile(r"^[1-9]\d* of 90"))
    expect(page.locator("figure").first).to_have_attribute("aria-busy", "false")
    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    keep(page, "real-paused")
    page.get_by_role("button", name="Resume").click()
    expect(state).to_have_text("running")
    page.get_by_role("button", name="Stop").click()
    expect(state).to_have_text("stopped")

    tabs = page.get_by_role("navigation", name="About this study")
    tabs.get_by_role("link", name="Trials").click()
    expect(page.locator("tbody tr").first).to_contain_text("a=")
    tabs.get_by_role("link", name="Log").click()
    expect(page.get_by_role("region", name="Log", exact=True)).to_contain_text("trial 0")
    tabs.get_by_role("link", name="Pictures").click()
    expect(page.locator("figure").first).to_be_visible()
    for figure in page.locator("figure").all():
        expect(figure).to_have_attribute("aria-busy", "false")
    keep(page, "real-pictures")
    guard.check()
    # What the page asks for while the study goes may come too late.
    guard.expected.append(r"status of 404 .*/studies/mine/")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No study yet.")).to_be_visible()
