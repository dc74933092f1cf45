"""What users note of a study: tags, a text, and whether the list leaves it out; who began it, and when."""

import pytest
from playwright.sync_api import expect


@pytest.mark.slow
def test_notes_are_kept_shown_and_found(fake, new_page, keep):
    fake.add("done", "finished", 12)
    fake.add("other", "finished", 12)
    page, guard = new_page(fake.url, "#/studies/done")
    guard.expected.append("status of 422")
    expect(page.get_by_text("began 2026-11-22 09:04 UTC, newest run 1 h 00 min later, ada")).to_be_visible()
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Notes").click()
    dialog = page.get_by_role("dialog", name="Notes on done")
    dialog.get_by_label("Tags").fill("paper <b>")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_role("alert")).to_contain_text("Tags: '<b>' was given")
    expect(dialog.get_by_label("Tags")).to_be_focused()
    dialog.get_by_label("Tags").fill("paper, blas")
    dialog.get_by_label("Note").fill("with the new BLAS")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator(".noted")).to_contain_text("with the new BLAS")
    assert fake.studies["done"].labels == {"tags": ["paper", "blas"], "note": "with the new BLAS", "archived": False}

    page.get_by_role("link", name="All studies").click()
    expect(page.get_by_role("row").filter(has_text="done")).to_contain_text("2026-11-22 09:04 ada")
    page.get_by_label("Find").fill("blas")
    expect(page.locator("table.studies tbody tr")).to_have_count(1)
    expect(page.locator("table.studies .noted-tag")).to_have_text(["paper", "blas"])
    keep(page, "tags")


@pytest.mark.slow
def test_the_list_leaves_out_what_is_archived_and_the_address_says_where_it_does_not(fake, new_page):
    fake.add("done", "finished", 12)
    fake.add("old", "finished", 12, labels={"tags": [], "note": "", "archived": True})
    page, _ = new_page(fake.url)
    expect(page.locator("table.studies tbody tr")).to_have_count(1)
    expect(page.get_by_text("1 of 2 studies")).to_be_visible()
    page.get_by_label("Archived, too").check()
    expect(page.locator("table.studies tbody tr")).to_have_count(2)
    assert page.evaluate("location.hash") == "#/?archived=yes"
    page.reload()
    expect(page.locator("table.studies tbody tr")).to_have_count(2)
