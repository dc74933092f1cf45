"""The page's other views: pictures, trials, the job script, the log, predictions, and the form for the token."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import until

pytestmark = pytest.mark.full

COLOURS = """() => [...document.querySelectorAll('.plot .panel .mark')].map(mark => {
    const { fill, stroke } = getComputedStyle(mark);
    return fill === 'none' ? stroke : fill;
})"""


def drawn(page):
    expect(page.locator("figure").first).to_have_attribute("aria-busy", "false")


def section(page, name):
    page.get_by_role("navigation", name="About this study").get_by_role("link", name=name).click()


def test_pictures_are_side_by_side_and_each_has_an_address(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures")
    titles = page.locator("figure h2")
    expect(titles).to_have_text(["Progress", "Fresh pairs of runs", "Ablation", "What matters", "Slices"])
    titles.nth(4).get_by_role("link").click()
    expect(titles).to_have_text(["Slices"])
    expect(page.get_by_role("img", name=re.compile("^Slices: "))).to_be_visible()
    page.go_back()
    expect(titles).to_have_count(5)


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
    svg = page.locator(".plot svg")
    points, words = svg.locator(".mark[data-role=trial]"), svg.locator(".panel text")
    before, whole = points.get_attribute("d"), words.all_text_contents()
    page.evaluate("globalThis.kept = document.querySelector('.plot svg')")
    box = svg.bounding_box()
    page.mouse.move(box["x"] + 0.3 * box["width"], box["y"] + 0.3 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.7 * box["width"], box["y"] + 0.6 * box["height"])
    page.mouse.up()
    zoomed = words.all_text_contents()
    assert zoomed != whole
    fake.act("qe", "resume")
    until(page, lambda: points.get_attribute("d").count("M") > before.count("M"))
    assert page.evaluate("globalThis.kept === document.querySelector('.plot svg')")
    assert words.all_text_contents() == zoomed
    svg.dblclick(position={"x": 300, "y": 100})
    assert words.all_text_contents() != zoomed


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
    asked = [path for _, path in fake.asked if "/table?" in path]
    assert all(path.endswith("&limit=50") for path in asked), "only what is on the screen is asked for"


def test_a_trial_is_one_line_with_the_parameters_that_are_chosen_as_columns(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/trials")
    table = page.get_by_role("region", name="Trials, table")
    rows = table.locator("tbody tr")
    expect(rows).to_have_count(12)
    plain, failed = rows.filter(has_text="complete"), rows.filter(has_text="out of memory")
    assert max(row.bounding_box()["height"] for row in plain.all()) < 50
    expect(failed.locator(".configuration")).to_contain_text("node17: killed at 180 GB")
    assert failed.bounding_box()["height"] < 70
    page.get_by_text("Columns", exact=True).click()
    page.get_by_role("checkbox", name="np", exact=True).check()
    head = table.get_by_role("columnheader", name=re.compile("^np"))
    head.get_by_role("button").click()
    expect(head).to_have_attribute("aria-sort", "ascending")
    assert page.url.endswith("columns=np")
    page.reload()
    expect(head).to_be_visible()


def test_what_a_trial_changes_has_most_of_its_line_also_beside_a_verdict(fake, new_page):
    study = fake.add("ucx", "finished", 3)
    long = {f"UCX_TCP_OPTION_{number}": "put_zcopy" for number in range(12)}
    study.trials = [
        one | {"configuration": one["configuration"] | (long if one["trial"] else {})} for one in study.trials
    ]
    study.trials[1] |= {"gain": "1.603x (1.512 to 1.833)", "confirmed": True}
    page, _ = new_page(fake.url, "#/studies/ucx/trials")
    row = page.get_by_role("region", name="Trials, table").locator("tbody tr").nth(1)
    gain, changed = row.get_by_text("1.603x", exact=True), row.locator(".configuration")
    expect(gain).to_have_attribute("title", "1.603x (1.512 to 1.833)")
    assert changed.bounding_box()["width"] > 0.5 * row.bounding_box()["width"]


def test_what_trials_are_wanted_is_in_the_address(fake, new_page):
    fake.add("done", "finished", 120)
    page, guard = new_page(fake.url, "#/studies/done/trials")
    rows = page.get_by_role("table", name="Trials").locator("tbody tr")
    where = page.get_by_label("Where")
    where.fill("blas = openblas-openmp")
    where.press("Enter")
    guard.expected.append("status of 422")
    expect(page.get_by_role("alert").filter(has_text="is not a comparison")).to_be_visible()
    expect(where).to_have_attribute("aria-invalid", "true")
    where.fill("np >= 24")
    where.press("Enter")
    expect(page.get_by_text("48 trials")).to_be_visible()
    page.get_by_label("Sorted by").select_option("threads, greatest first")
    expect(rows.first).to_contain_text("threads=2")
    address = page.url
    assert address.endswith("#/studies/done/trials?where=np+%3E%3D+24&sort=threads")
    rows.first.get_by_role("link").click()
    page.get_by_role("link", name="All trials").click()
    expect(page.get_by_text("48 trials")).to_be_visible()
    assert page.url == address
    page.reload()
    expect(page.get_by_text("48 trials")).to_be_visible()
    expect(where).to_have_value("np >= 24")
    expect(page.get_by_label("Sorted by")).to_have_value("threads down")
    with page.expect_download() as saved:
        page.get_by_role("button", name="Save as CSV").click()
    assert saved.value.suggested_filename == "done-trials.csv"
    assert Path(saved.value.path()).read_text().count("\n") == 49


def test_the_best_stands_beside_the_verdict_with_its_command(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done", permissions=["clipboard-read", "clipboard-write"])
    best = page.get_by_role("region", name="Configuration", exact=True)
    command = best.get_by_role("region", name="Command of the best")
    expect(command).to_have_text("mpirun -np 24 pw.x -inp tio2.in")
    expect(command).to_be_in_viewport()
    best.get_by_role("button", name="Copy").click()
    expect(best.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == command.text_content()


def test_a_row_leads_to_the_trial_s_runs_their_commands_and_what_they_printed(fake, new_page):
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url, "#/studies/done/trials")
    table = page.get_by_role("table", name="Trials")
    table.get_by_role("link", name="4", exact=True).click()
    trial = page.get_by_role("region", name="Trial", exact=True)
    expect(trial.get_by_role("heading", name="Trial 4")).to_be_focused()
    expect(trial.get_by_text("node17: killed at 180 GB").first).to_be_visible()
    expect(trial.get_by_role("region", name="Command")).to_have_text("mpirun -np 24 pw.x -inp tio2.in")
    expect(trial.get_by_role("region", name="stderr")).to_contain_text("node17: killed")
    expect(trial.get_by_role("region", name="Runs").get_by_role("row").nth(1)).to_contain_text("tuning")
    expect(table).to_be_hidden()
    page.reload()
    expect(trial.get_by_role("region", name="stdout")).to_contain_text("convergence has been achieved")
    trial.get_by_role("link", name="All trials").click()
    expect(table).to_be_visible()
    guard.expected.append("status of 404")
    page.goto(f"{fake.url}#/studies/done/trials/99")
    expect(trial.get_by_role("alert")).to_have_text("study 'done' has no trial 99")


def test_the_job_script_is_copied(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/script", permissions=["clipboard-read", "clipboard-write"])
    script = page.get_by_role("region", name="Job script", exact=True)
    expect(script).to_contain_text("# slurm")
    page.get_by_label("For").select_option("PBS (qsub)")
    expect(script).to_contain_text("# pbs")
    form, copy = page.get_by_label("For").bounding_box(), page.get_by_role("button", name="Copy").bounding_box()
    assert form["y"] + form["height"] == pytest.approx(copy["y"] + copy["height"], abs=1.0)
    page.get_by_role("button", name="Copy").click()
    expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == script.text_content()


def test_without_a_winner_there_is_no_script_and_nothing_complains(fake, new_page):
    fake.add("new", "waiting", 0, budget=10, held=True)
    page, _ = new_page(fake.url, "#/studies/new")
    expect(page.get_by_text("Nothing measured yet.")).to_be_visible()
    expect(page.get_by_text("Waiting for cores.")).to_be_visible()
    section(page, "Pictures")
    expect(page.get_by_text("No picture yet: nothing was measured.")).to_be_visible()
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
    expect(first).to_contain_text("2.672 s, measured in 3 runs")
    expect(first).to_contain_text("1.550x (1.100 to 2.100)")
    expect(table.get_by_role("row").nth(2)).to_contain_text("2.1 s (1.6 s to 2.9 s)")
    expect(table.get_by_role("row").nth(3)).to_contain_text("looks 1.45x")
    expect(table.get_by_role("row").nth(5)).to_contain_text("not known")
    expect(page.get_by_text("2 of the 5 were measured there, the others are predicted.")).to_be_visible()
    expect(table.get_by_role("row").last).to_contain_text("default")
    expect(page.get_by_text("Best measured on gadi: 2.672 s with np=24")).to_be_visible()
    expect(page.get_by_role("heading", name="Proposals for gadi")).to_be_focused()
    expect(page.get_by_text("one workload only")).to_be_visible()

    page.get_by_label("Only configurations that keep to").fill("np is small")
    page.get_by_role("button", name="Predict").click()
    rules = page.get_by_label("Only configurations that keep to")
    expect(page.get_by_role("alert")).to_have_text("Only configurations that keep to: 'np is small' is no rule")
    expect(rules).to_have_attribute("aria-invalid", "true")
    expect(rules).to_be_focused()
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
    page.get_by_text("More", exact=True).click()
    with page.expect_download() as report:
        page.get_by_role("link", name="Report").click()
    assert report.value.suggested_filename == "autotune-done.html"
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · autotune")
    assert page.evaluate("Object.values(sessionStorage)") == []


def test_a_token_in_the_address_is_taken_once_and_removed(fake, new_page):
    fake.token = "right + %"
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url, "#token=right%20%2B%20%25")
    expect(page.get_by_role("link", name="done")).to_be_visible()
    assert "token" not in page.url
    other = page.context.new_page()
    other.goto(fake.url + "#/studies/done")  # another tab has it, too
    expect(other.get_by_role("heading", name="Verdict")).to_be_visible()
    guard.expected.append("status of 401")
    page.get_by_role("button", name="Sign out").click()
    expect(page).to_have_title("Sign in · autotune")
    assert page.evaluate("Object.values(localStorage)") == []
    assert "right" not in "".join(path for _, path in fake.asked)
