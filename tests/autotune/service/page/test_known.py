"""What is known to work, on the page; and a read-only service, whose page has no button that cannot work."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.full


def test_what_is_known_to_work(fake, new_page, keep):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url)
    page.get_by_role("link", name="Known to work").click()
    expect(page).to_have_title("Known to work · autotune")
    row = page.get_by_role("row").filter(has_text="solver")
    expect(row).to_contain_text("1.670x (1.570 to 1.770)")
    expect(row).to_contain_text("over 3.36 s")
    expect(row).to_contain_text("ada@node17, 14 runs")
    expect(row).to_contain_text("2026-11-22")
    unsure = page.get_by_role("row").filter(has_text="melt")
    expect(unsure).to_contain_text("looks 2.1x, not confirmed")
    keep(page, "known")
    row.get_by_role("link", name="done").click()
    expect(page.get_by_role("heading", name="done", level=1)).to_be_visible()


def test_a_read_only_service_has_no_buttons_that_cannot_work(fake, new_page, keep):
    fake.add("done", "finished", 12)
    fake.read_only = True
    page, _ = new_page(fake.url)
    expect(page.get_by_role("row").filter(has_text="done")).to_be_visible()
    expect(page.get_by_role("button", name="Start a study")).to_be_hidden()
    expect(page.locator("#about")).to_have_text("autotune 0.9.0, read-only")
    page.get_by_role("link", name="done").click()
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_role("link", name="Report")).to_be_visible()
    for verb in ("Pause", "Resume", "Stop", "Delete"):
        expect(page.get_by_role("button", name=verb)).to_be_hidden()
    keep(page, "read-only")
