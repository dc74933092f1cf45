"""The page's other views: pictures, trials, the job script, the log, predictions, and the form for the token."""

import re

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import TIMES, until

pytestmark = pytest.mark.slow

COLOURS = """() => [...document.querySelectorAll('.plot .scatterlayer .trace')].map(trace => {
    const point = trace.querySelector('.point');
    return point ? point.style.fill : trace.querySelector('path').style.stroke;
}).filter(Boolean)"""


def drawn(page):
    expect(page.locator("figure").first).to_have_attribute("aria-busy", "false")


def section(page, name):
    page.get_by_role("navigation", name="About this study").get_by_role("link", name=name).click()


def test_pictures_are_those_that_the_study_has(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures")
    nav = page.get_by_role("navigation", name="Pictures")
    expect(nav.get_by_role("link")).to_have_text(["Progress", "Slices", "Parallel coordinates", "Ablation", "Failures"])
    for name in ("Slices", "Parallel coordinates", "Ablation", "Failures", "Progress"):
        nav.get_by_role("link", name=name).click()
        expect(page.get_by_role("img", name=re.compile(f"^{name}: "))).to_be_visible()
        drawn(page)
    page.go_back()
    expect(page.get_by_role("heading", name="Failures")).to_be_visible()


def test_a_picture_has_its_figures_as_a_table(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures/ablation")
    page.get_by_text("The figures as a table").click()
    table = page.get_by_role("region", name="Ablation, as a table")
    expect(table.get_by_role("row").nth(1)).to_have_text("blas1.311.271.35")


def test_a_picture_follows_in_place_and_keeps_what_was_zoomed(fake, new_page):
    fake.add("qe", "paused", 3)
    page, _ = new_page(fake.url, "#/studies/qe/pictures/progress")
    drawn(page)
    points = page.locator(".plot .scatterlayer .point")
    before = points.count()
    page.evaluate("globalThis.kept = document.querySelector('.plot .svg-container')")
    page.evaluate("Plotly.relayout(document.querySelector('.plot'), {'yaxis.range': [1, 9]})")
    fake.act("qe", "resume")
    expect(points).not_to_have_count(before)
    assert page.evaluate("globalThis.kept === document.querySelector('.plot .svg-container')")
    assert page.evaluate("document.querySelector('.plot').layout.yaxis.range") == [1, 9]


def test_pictures_change_their_colours_with_the_page(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures/progress", color_scheme="light")
    drawn(page)
    light = page.evaluate(COLOURS)
    assert len(set(light)) >= 4, "each role has a colour of its own"
    page.emulate_media(color_scheme="dark")
    until(page, lambda: all(one != before for one, before in zip(page.evaluate(COLOURS), light, strict=True)))
    page.get_by_label("Colours").select_option("light")
    until(page, lambda: page.evaluate(COLOURS) == light)
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "light", "the choice is remembered"


def test_trials_are_sorted_filtered_and_paged(fake, new_page):
    fake.add("done", "finished", 120)
    page, _ = new_page(fake.url, "#/studies/done/trials")
    table = page.get_by_role("region", name="Trials, table")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(50)
    expect(rows.first).to_contain_text("119")
    expect(page.get_by_text("1 to 50 of 120 trials")).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(rows.first).to_contain_text("69")

    head = table.get_by_role("columnheader", name="Speed-up")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    expect(rows.first).to_contain_text("0.952")
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "descending")
    expect(head.get_by_role("button")).to_be_focused()
    expect(rows.first).to_contain_text("1.68")
    table.get_by_role("button", name="Trial", exact=True).click()
    expect(rows.first.get_by_role("rowheader")).to_have_text("0")

    page.get_by_label("Show").select_option("capped")
    expect(page.get_by_text("15 trials")).to_be_visible()
    expect(rows.first).to_contain_text("> 2.26")
    asked = [path for _, path in fake.asked if "/trials?" in path]
    assert asked[0].endswith("after=-1&limit=500")


def test_many_trials_are_fetched_page_by_page(fake, new_page):
    fake.add("large", "finished", 1100, budget=1100)
    page, _ = new_page(fake.url, "#/studies/large/trials")
    expect(page.get_by_text("of 1100 trials")).to_be_visible()
    asked = [path.partition("?")[2] for _, path in fake.asked if "/trials?" in path]
    assert asked[:3] == ["after=-1&limit=500", "after=499&limit=500", "after=999&limit=500"]


def test_the_job_script_is_copied(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/script", permissions=["clipboard-read", "clipboard-write"])
    script = page.get_by_role("region", name="Job script", exact=True)
    expect(script).to_contain_text("# slurm")
    page.get_by_label("For").select_option("PBS (qsub)")
    expect(script).to_contain_text("# pbs")
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == script.text_content()


def test_without_a_winner_there_is_no_script_and_nothing_complains(fake, new_page):
    fake.add("new", "waiting", 0, budget=10, held=True)
    page, _ = new_page(fake.url, "#/studies/new")
    expect(page.get_by_text("Nothing measured yet.")).to_be_visible()
    expect(page.get_by_text("Waiting for cores.")).to_be_visible()
    section(page, "Pictures")
    expect(page.get_by_role("heading", name="No picture yet")).to_be_visible()
    section(page, "Trials")
    expect(page.get_by_text("No trial yet.")).to_be_visible()
    section(page, "Job script")
    expect(page.get_by_text("No winner yet")).to_be_visible()
    assert not any("/script?" in path for _, path in fake.asked)


def test_the_log_follows(fake, new_page):
    fake.add("qe", "running", 3, budget=10_000)
    page, _ = new_page(fake.url, "#/studies/qe/log")
    log = page.get_by_role("region", name="Log", exact=True)
    expect(log).to_contain_text("trial 2: capped")
    expect(log).to_contain_text("trial 9: complete")


def test_predictions_stand_beside_what_was_measured(fake, new_page):
    page, guard = new_page(fake.url, "#/predictions")
    guard.expected.append("status of 422")
    expect(page).to_have_title("Predictions · autotune")
    page.get_by_label("Machine").select_option("gadi")
    expect(page.get_by_text("NCI Gadi: 48 cores")).to_be_visible()
    page.get_by_role("button", name="Predict").click()
    table = page.get_by_role("region", name="Proposals")
    first = table.get_by_role("row").nth(1)
    expect(first).to_contain_text("2.05 s1.6 s to 2.9 s")
    expect(first).to_contain_text(f"1.55{TIMES}1.10{TIMES} to 2.10{TIMES}")
    expect(first).to_contain_text("2.672 s3 runs")
    expect(table.get_by_role("row").nth(4)).to_contain_text("not measured")
    expect(table.get_by_role("row").last).to_contain_text("default")
    expect(page.get_by_text("Best measured on gadi: 2.672 s with np=24")).to_be_visible()
    expect(page.get_by_role("heading", name="Proposals for gadi")).to_be_focused()
    expect(page.get_by_text("one workload only")).to_be_visible()

    page.get_by_label("Only configurations that keep to").fill("np is small")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("alert")).to_have_text("where: 'np is small' is no rule")
    page.get_by_label("Only configurations that keep to").fill("np <= 24\n\nnpool <= 3")
    page.get_by_label("Machine").select_option("summit")
    page.get_by_role("button", name="Predict").click()
    expect(page.get_by_role("heading", name="Nothing can be proposed")).to_be_focused()
    expect(page.get_by_text("nothing was measured on a machine with POWER9")).to_be_visible()


def test_a_token_is_asked_for_and_kept_for_the_tab_only(fake, new_page):
    fake.token = "right"
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url, "#/studies/done")
    guard.expected.append("status of 401")
    expect(page).to_have_title("Sign in · autotune")
    field = page.get_by_label("Token")
    expect(field).to_be_focused()
    field.fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("wants a token")
    field.fill("right")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    assert page.evaluate("Object.values(localStorage)") == []
    with page.expect_download() as report:
        page.get_by_role("link", name="Report").click()
    assert report.value.suggested_filename == "autotune-done.html"
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · autotune")
    assert page.evaluate("Object.values(sessionStorage)") == []


def test_a_token_in_the_address_is_taken_once_and_removed(fake, new_page):
    fake.token = "right + %"
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#token=right%20%2B%20%25")
    expect(page.get_by_role("link", name="done")).to_be_visible()
    assert "token" not in page.url
    assert "right" not in "".join(path for _, path in fake.asked)
