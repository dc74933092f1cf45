"""Starting a study with all its options, and what can be done with one that has ended."""

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import DESKTOP, PHONE


@pytest.mark.slow
def test_the_dialog_says_what_it_will_cost_and_sends_every_option(fake, new_page, keep):
    page, _ = new_page(fake.url)
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    cost = dialog.get_by_role("status")
    expect(cost).to_contain_text("50 more trials and the verdict: about 25 min 00 s, 10 core-h")
    dialog.get_by_label("Trials").fill("10")
    dialog.get_by_label("Seed").fill("7")
    expect(cost).to_contain_text("10 more trials and the verdict: about 5 min 00 s")
    expect(cost).to_contain_text("in nine cases of ten 4 min 10 s to 5 min 50 s, by 12 trials of done on")
    keep(page, "start-dialog")
    dialog.get_by_label("Cores").fill("0-3")
    dialog.get_by_label("Launcher").select_option("slurm")
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="qe", level=1)).to_be_visible()
    assert fake.orders == [{"study": "qe", "trials": 10, "seed": 7, "cores": "0-3", "launcher": "slurm"}]


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [DESKTOP, PHONE])
def test_the_button_stays_under_the_pointer_whatever_is_said_of_the_cost(fake, new_page, viewport):
    page, guard = new_page(fake.url, viewport=viewport)
    guard.expected.append("status of 422")
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    cost, start = dialog.get_by_role("status"), dialog.get_by_role("button", name="Start")
    expect(cost).to_contain_text("50 more trials")
    # A click elsewhere ends the typing, and what it will cost is asked for again: now there is no answer.
    dialog.get_by_label("Trials").fill("many")
    start.hover()
    before = start.bounding_box()
    page.mouse.down()
    expect(cost).to_have_text("")
    assert start.bounding_box() == before
    page.mouse.up()
    expect(dialog.get_by_role("alert")).to_contain_text("'many' is neither")


@pytest.mark.slow
def test_where_other_programs_make_the_runs_nothing_is_said_of_cores_or_cost(fake, new_page):
    page, _ = new_page(fake.url)
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    dialog.get_by_label("Study").select_option("own")
    expect(dialog.get_by_role("status")).to_contain_text("not known yet")
    expect(dialog.get_by_label("Seed")).to_be_visible()
    expect(dialog.get_by_label("Cores")).to_be_hidden()
    expect(dialog.get_by_label("Launcher")).to_be_hidden()


@pytest.mark.slow
def test_a_study_that_has_ended_is_gone_on_with_and_compared(fake, new_page, keep):
    study = fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done")
    keep(page, "ended")
    page.get_by_role("button", name="More trials").click()
    dialog = page.get_by_role("dialog", name="More trials of done")
    dialog.get_by_label("How many more").fill("3")
    dialog.get_by_role("button", name="Make them").click()
    expect(page.locator(".standing .figures")).to_have_text("15 of 15")
    expect(page.locator(".badge")).to_have_text("finished")
    page.get_by_role("button", name="Confirm now").click()
    dialog = page.get_by_role("dialog", name="A more precise verdict on done")
    expect(dialog).to_contain_text("The verdict has 19 pairs")
    expect(dialog.get_by_label("Pairs of runs in all")).to_have_value("38")
    dialog.get_by_role("button", name="Make them").click()
    # Of the fake each of the two makes one run more than was asked for.
    expect(page.locator(".standing .figures")).to_have_text("16 of 15")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Ablate").click()
    expect(page.locator(".standing .figures")).to_have_text("17 of 16")
    expect(page.locator(".badge")).to_have_text("finished")
    assert fake.orders == [{"extend": {"trials": 3}}, {"confirm": {"pairs": 38}}, {"ablate": {}}]
    with fake.changed:
        study.state, study.held = "running", True
        fake.changed.notify_all()
    confirm = page.get_by_role("button", name="Confirm now")
    expect(confirm).to_be_hidden()


@pytest.mark.slow
def test_another_study_is_started_with_the_options_of_one(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Start another").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    expect(dialog.get_by_label("Name")).to_have_value("done-2")
    expect(dialog.get_by_label("Cores")).to_have_value("0-3")
    dialog.get_by_role("button", name="Start").click()
    expect(page.get_by_role("heading", name="done-2", level=1)).to_be_visible()
    wanted = {"study": "qe", "name": "done-2", "trials": 12, "timeout": "1800s", "seed": 7, "cores": "0-3"}
    assert fake.orders == [wanted]


@pytest.mark.slow
def test_a_name_that_is_taken_goes_on_with_that_study_and_says_so_first(fake, new_page):
    fake.add("qe", "stopped", 7)
    page, _ = new_page(fake.url)
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    expect(dialog.get_by_text("There is a study qe: this goes on with it.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Go on with it")).to_be_visible()
    dialog.get_by_label("Trials").fill("7")
    dialog.get_by_label("Name").focus()
    expect(dialog.get_by_text("All these trials are made already")).to_be_visible()
    dialog.get_by_label("Name").fill("other")
    expect(dialog.get_by_text("There is a study")).to_be_hidden()
    dialog.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_role("heading", name="other", level=1)).to_be_visible()
