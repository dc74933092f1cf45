"""The page in a real browser: a study is started, watched, paused, resumed, stopped and deleted."""

import re

import pytest
from playwright.sync_api import expect

from tests.autotune.service import fakefigures as figures
from tests.autotune.service.page.conftest import until

pytestmark = pytest.mark.slow

# Pictures and trials of a study that is deleted at that moment.
ASKED_TOO_LATE = r"status of 404 .*/studies/(done|mine)/"


def test_life_of_a_study(fake, new_page):
    page, guard = new_page(fake.url)
    expect(page.get_by_text("No study yet.")).to_be_visible()
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog", name="Start a study")
    expect(dialog.get_by_text("An SCF cycle of pw.x")).to_be_visible()
    dialog.get_by_label("Name").fill("mine")
    dialog.get_by_label("Trials").fill("500")
    dialog.get_by_role("button", name="Start").click()

    expect(page.get_by_role("heading", name="mine", level=1)).to_be_visible()
    state = page.locator(".badge")
    expect(state).to_have_text("running")
    expect(page).to_have_title("mine: running · autotune")
    expect(page.get_by_role("region", name="Running now")).to_contain_text("trial")
    expect(page.locator(".standing .figures")).to_have_text(re.compile(r"^([3-9]|\d\d+) of 500"))

    page.get_by_role("button", name="Pause").click()
    expect(state).to_have_text("paused")
    expect(page.locator("#announcer")).to_have_text("mine is paused")
    before = page.locator(".standing .figures").inner_text()
    page.get_by_role("button", name="Resume").click()
    expect(state).to_have_text("running")
    expect(page.locator(".standing .figures")).not_to_have_text(before)
    page.get_by_role("button", name="Stop").click()
    expect(state).to_have_text("stopped")

    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Delete").click()
    sure = page.get_by_role("dialog", name="Delete mine?")
    expect(sure.get_by_role("button", name="Keep it")).to_be_focused()
    page.keyboard.press("Escape")
    expect(sure).to_be_hidden()
    expect(page.get_by_role("button", name="Delete")).to_be_focused()
    assert "mine" in fake.studies
    guard.expected.append(ASKED_TOO_LATE)
    page.get_by_role("button", name="Delete").click()
    sure.get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No study yet.")).to_be_visible()
    assert fake.studies == {}


def test_the_list_follows_without_being_loaded_again(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url)
    row = page.get_by_role("row").filter(has_text="done")
    expect(row).to_contain_text("12 of 12")
    expect(row).to_contain_text("1.667x (1.567 to 1.767)")
    expect(row).to_contain_text("1 out of memory, 1 timed out")
    page.evaluate("globalThis.mark = 1")
    fake.add("qe", "running", 2)
    expect(page.get_by_role("row").filter(has_text="qe")).to_contain_text("finished")
    fake.delete("done")
    expect(row).to_have_count(0)
    assert page.evaluate("globalThis.mark") == 1


def test_a_run_whose_job_is_in_a_queue_says_why_it_waits(fake, new_page):
    study = fake.add("qe", "running", 2, budget=10_000, held=True, waits="Not Running: no free nodes")
    page, _ = new_page(fake.url, "#/studies/qe")
    region = page.get_by_role("region", name="Running now")
    expect(region).to_contain_text("waits: Not Running: no free nodes")
    with fake.changed:
        study.waits = ""
        fake.changed.notify_all()
    expect(region).to_contain_text("step 4")
    expect(region).not_to_contain_text("waits")


def test_the_service_s_errors_are_shown_beside_the_form(fake, new_page):
    page, guard = new_page(fake.url)
    guard.expected.append("status of 422")
    page.get_by_role("button", name="Start a study").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Study")).to_have_value("qe")
    dialog.get_by_label("Trials").fill("many")
    dialog.get_by_role("button", name="Start").click()
    expect(dialog.get_by_role("alert")).to_have_text("Trials: 'many' is neither a number of 1 or more nor 'auto'")
    expect(dialog).to_be_visible()
    expect(dialog.get_by_label("Trials")).to_have_attribute("aria-invalid", "true")
    expect(dialog.get_by_label("Trials")).to_be_focused()


def test_the_back_button_and_titles(fake, new_page):
    fake.add("a/b c", "finished", 12)
    page, _ = new_page(fake.url)
    expect(page).to_have_title("Studies · autotune")
    page.get_by_role("link", name="a/b c").click()
    expect(page).to_have_title("a/b c: finished · autotune")
    page.get_by_role("link", name="Trials").click()
    expect(page.get_by_role("heading", name="Trials")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    page.go_back()
    expect(page.get_by_role("heading", name="Studies")).to_be_visible()
    page.go_forward()
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    page.reload()
    expect(page.get_by_role("heading", name="a/b c")).to_be_visible()


def test_a_verdict_comes_first_and_says_its_doubt(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done")
    expect(page.get_by_role("heading", level=2).first).to_have_text("Verdict")
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("1.667 times as fast as the default configuration (95% interval")
    expect(verdict.locator(".doubt")).to_contain_text(["the interval is wide", "others took 12% of these runs"])
    expect(verdict).to_contain_text("of 40 runs, 3 set aside for that")
    expect(page.get_by_role("region", name="Without a value")).to_contain_text("timed out")
    expect(page.get_by_role("region", name="Ledger")).to_contain_text("core-s")
    expect(verdict).to_contain_text("Next: Use it: autotune best done --script sh writes its job script.")
    expect(verdict).to_contain_text("1.9 s median of 19 fresh runs")
    changed = page.get_by_role("region", name="What the best changes")
    expect(changed).to_contain_text("openblas")
    expect(changed).not_to_contain_text("npool")


def test_a_study_in_which_nothing_worked_has_failed_and_says_why(fake, new_page):
    study = fake.add("dead", "failed", 6)
    study.trials = [
        one | {"state": "application error", "value": None, "speed_up": None, "message": "Segmentation fault"}
        for one in study.trials
    ]
    page, _ = new_page(fake.url)
    row = page.get_by_role("row", name="dead")
    expect(row).to_contain_text("every trial failed, 6 of 6; trial 0: Segmentation fault")
    row.get_by_role("link").click()
    expect(page.get_by_text("ended, and nothing has worked")).to_be_visible()
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("Nothing has worked: every trial failed, 6 of 6")
    without = page.get_by_role("region", name="Without a value")
    expect(without).to_contain_text("The first error, of trial 0: Segmentation fault")


def test_what_has_ended_without_a_verdict_does_not_claim_one(fake, new_page):
    study = fake.add("old", "finished", 12)
    study.compared = False
    page, _ = new_page(fake.url, "#/studies/old")
    expect(page.get_by_text("ended, without a verdict")).to_be_visible()
    ledger = page.get_by_role("region", name="Ledger")
    expect(ledger).to_contain_text("If a verdict confirms the best, it is paid for after 56 production runs")
    expect(page.get_by_role("region", name="Verdict")).to_contain_text(
        "runs of the same configuration differ by 2.1%; the machine drifted by 8%"
    )


def test_a_trade_off_shows_its_front_and_claims_no_winner(fake, new_page):
    fake.add("both", "finished", 12, is_tradeoff=True)
    page, _ = new_page(fake.url, "#/studies/both")
    front = page.get_by_role("region", name="Front", exact=True)
    expect(front.get_by_role("row")).to_have_count(3)
    expect(front).to_contain_text("2.1 GB")
    verdict = page.get_by_role("region", name="Verdict")
    expect(verdict).to_contain_text("2 trials on the front")
    expect(page.get_by_role("img", name="The trade-off")).to_be_visible()
    expect(page.get_by_text("No verdict yet")).to_have_count(0)
    expect(page.get_by_role("button", name="Confirm now")).to_be_hidden()


def test_a_table_of_decisions_says_what_to_use_where_and_claims_no_winner(fake, new_page):
    fake.add("lookup", "finished", 12, decisions=figures.DECISIONS)
    page, _ = new_page(fake.url, "#/studies/lookup")
    what = page.get_by_role("region", name="What to use where", exact=True)
    expect(what.get_by_role("row").last).to_have_text("10000 to 50000way=index9.4003.200 to 31.0008")
    expect(what).to_contain_text("2 of 4 cells are better")
    expect(page.get_by_role("img", name="The decision table")).to_be_visible()
    expect(page.get_by_text("not confirmed yet")).to_have_count(0)
    expect(page.get_by_role("region", name="Configuration")).to_have_count(0)


def test_weights_choose_a_point_of_the_front_which_is_compared(fake, new_page):
    fake.add("both", "finished", 12, is_tradeoff=True)
    page, guard = new_page(fake.url, "#/studies/both")
    guard.expected.append("422")
    front = page.get_by_role("region", name="Front", exact=True)
    compare = front.get_by_role("button", name="Compare it with the default")
    expect(compare).to_have_attribute("title", "not possible before a point is chosen")
    front.get_by_label("memory_bytes").fill("0")
    front.get_by_label("wall_s").fill("0")
    front.get_by_role("button", name="Choose a point").click()
    expect(front.get_by_role("alert")).to_contain_text("all weights are 0")
    front.get_by_label("wall_s").fill("2")
    page.keyboard.press("Enter")
    expect(front.get_by_role("status")).to_contain_text("is best for these weights: wall_s")
    expect(front.get_by_role("row").filter(has_text="chosen")).to_have_count(1)
    compare.click()
    expect(front.get_by_role("status")).to_contain_text("is compared with the default in fresh runs")
    assert fake.orders == [{"confirm": {"weights": "wall_s=2,memory_bytes=0"}}]


def test_the_list_and_the_overview_show_the_same_values(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url)
    expect(page.get_by_role("row", name="done")).to_contain_text("1.9 s")
    page.get_by_role("link", name="done").click()
    expect(page.get_by_role("region", name="Verdict")).to_contain_text("1.9 s median of 19 fresh runs")


def test_every_metric_and_the_checks_of_the_winner_are_shown(fake, new_page):
    metrics = [{"name": "ttft_ms", "best": "41 ms", "default": "90 ms", "limit": "ttft_ms <= 50 ms"}]
    fake.add(
        "served", "finished", 12, metrics=metrics, checks=["check 1: as fast", "check 2: slower"], alarms=["Slower."]
    )
    page, _ = new_page(fake.url, "#/studies/served")
    rows = page.get_by_role("region", name="All metrics").first.get_by_role("row")
    expect(rows.last).to_have_text("ttft_ms41 ms90 msttft_ms <= 50 ms")
    with fake.changed:
        fake.studies["served"].metrics = [metrics[0] | {"limit": ""}]
        fake.changed.notify_all()
    expect(rows.first).to_have_text("MetricBestDefault")
    checks = page.get_by_role("region", name="Checks of the winner")
    expect(checks).to_contain_text("Slower.")
    expect(checks.get_by_role("listitem").first).to_have_text("check 2: slower")


def test_what_the_command_line_works_on_is_not_offered_to_be_resumed(fake, new_page):
    working = "autotune (process 8731) works on it since 2026-11-23 10:00 UTC"
    study = fake.add("qe", "running", 7, held=True, managed=False, message=working)
    page, _ = new_page(fake.url, "#/studies/qe")
    resume = page.get_by_role("button", name="Resume")
    expect(page.get_by_text(working)).to_be_visible()
    expect(resume).to_be_hidden()
    page.get_by_text("More", exact=True).click()
    expect(page.get_by_role("button", name="Delete")).to_have_attribute("aria-disabled", "true")
    with fake.changed:
        study.state, study.message = "stopped", ""
    expect(resume).to_have_attribute("aria-disabled", "false")


def test_an_error_of_the_connection_goes_with_it(fake, new_page):
    fake.add("qe", "running", 3, budget=10_000)
    page, guard = new_page(fake.url, "#/studies/qe")
    guard.expected.append("ERR_")
    pause = page.get_by_role("button", name="Pause")
    expect(pause).to_have_attribute("aria-disabled", "false")
    fake.go()
    pause.click()
    error = page.get_by_role("alert").filter(has_text="The service does not answer")
    expect(error.first).to_be_visible()
    fake.come()
    expect(error).to_have_count(0)


@pytest.mark.full
def test_a_silent_connection_is_noticed_within_twenty_seconds(fake, new_page):
    study = fake.add("qe", "running", 3, budget=10_000)
    study.held = True
    page, guard = new_page(fake.url, "#/studies/qe")
    guard.expected.append("ERR_")
    page.clock.install()
    page.reload()
    clock = page.get_by_role("region", name="Running now").locator(".figures").first
    expect(clock).to_be_visible()
    fake.silent = True
    page.clock.run_for(21_000)
    expect(page.locator("#connection")).to_contain_text("Connection lost")
    before = clock.text_content()
    page.clock.run_for(3_000)
    assert clock.text_content() == before, "nobody knows how long it runs"


def test_a_study_that_is_not_there(fake, new_page):
    page, guard = new_page(fake.url, "#/studies/nobody")
    guard.expected.append("status of 404")
    expect(page.get_by_role("alert")).to_have_text("there is no study 'nobody'")
    page.get_by_role("link", name="To the list of studies").click()
    expect(page).to_have_title("Studies · autotune")


def test_a_study_that_is_being_deleted_says_so(fake, new_page):
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url, "#/studies/done")
    guard.expected.append(ASKED_TOO_LATE)
    expect(page.locator(".badge")).to_have_text("finished")
    held = []
    page.route("**/studies/done", lambda route: held.append(route))  # noqa: PLW0108  Playwright marks the function
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Delete").click()
    page.get_by_role("dialog", name="Delete done?").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("Deleting done …")).to_be_visible()
    until(page, lambda: held)
    held[0].continue_()
    expect(page).to_have_title("Studies · autotune")


def test_a_study_deleted_elsewhere_says_so(fake, new_page):
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url, "#/studies/done")
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    guard.expected.append(ASKED_TOO_LATE)
    fake.delete("done")
    expect(page.get_by_role("alert")).to_have_text("This study was deleted.")


def test_a_verb_that_the_service_refuses_says_why(fake, new_page):
    study = fake.add("qe", "running", 3, budget=10_000)
    page, guard = new_page(fake.url, "#/studies/qe")
    guard.expected.append("status of 409")
    expect(page.locator(".badge")).to_have_text("running")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Ablate").click(force=True)
    expect(page.locator("#announcer")).to_have_text("Ablate: not possible while the study is running.")
    page.route("**/pause", lambda route: (setattr(study, "state", "finished"), route.continue_())[1])
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_role("alert").filter(has_text="cannot pause")).to_contain_text("that is finished")


def test_a_verb_before_the_study_has_been_read_says_so(fake, new_page):
    fake.add("qe", "running", 3, budget=10_000)
    page, _ = new_page(fake.url)
    held = []
    page.route("**/studies/qe/events", lambda route: held.append(route))  # noqa: PLW0108  Playwright marks the function
    page.get_by_role("link", name="qe").click()
    page.get_by_role("button", name="Pause").press("Enter")
    expect(page.locator("#announcer")).to_have_text("Pause: not possible before the study has been read.")
    until(page, lambda: held)
    for route in held:
        route.continue_()
    expect(page.locator(".badge")).to_have_text("running")


def test_the_page_comes_back_when_the_service_does(fake, new_page):
    fake.add("done", "finished", 12)
    page, guard = new_page(fake.url)
    guard.expected.append("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE|ERR_CONNECTION_RESET|ERR_EMPTY_RESPONSE")
    expect(page.get_by_role("link", name="done")).to_be_visible()
    fake.go()
    told = page.locator("#connection")
    expect(told).to_contain_text("Connection lost, trying again")
    expect(page.get_by_role("link", name="done")).to_be_visible()
    fake.add("later", "finished", 12)
    fake.come()
    expect(page.get_by_role("link", name="later")).to_be_visible()
    expect(told).to_be_hidden()


def test_hostile_text_stays_text(fake, new_page):
    evil = '<img src=x onerror="globalThis.hit=1"><script>globalThis.hit=1</script>'
    study = fake.add(evil, "failed", 9, message=f"bad {evil}", machine=evil, objective=evil)
    study.trials[2] = study.trials[2] | {"message": evil, "state": evil, "configuration": {evil: evil}}
    page, _ = new_page(fake.url)
    link = page.get_by_role("link", name=evil)
    expect(link).to_be_visible()
    link.click()
    expect(page.get_by_role("heading", level=1)).to_have_text(evil)
    for section in ("Pictures", "Trials", "Job script", "Log"):
        page.get_by_role("navigation", name="About this study").get_by_role("link", name=section).click()
        expect(page.get_by_role("heading", level=2).first).to_be_visible()
        if section == "Trials":
            expect(page.locator("tbody")).to_contain_text(f"{evil}={evil}")
        if section == "Pictures":
            expect(page.locator("figure").first).to_have_attribute("aria-busy", "false")
    page.get_by_text("More", exact=True).click()
    page.get_by_role("button", name="Delete").click()
    expect(page.get_by_role("dialog")).to_contain_text(evil)
    assert page.evaluate("globalThis.hit") is None
    assert page.locator("main img, main script").count() == 0


def test_studies_are_found_and_sorted_and_the_address_says_so(fake, new_page):
    fake.add("done", "finished", 12)
    fake.add("large", "finished", 30, budget=30)
    fake.add("waits", "waiting", 0, budget=10, held=True, objective="command", machine="another one")
    page, _ = new_page(fake.url)
    names = page.get_by_role("table", name="Studies").get_by_role("rowheader").get_by_role("link")
    expect(names).to_have_text(["done", "large", "waits"])
    page.get_by_label("Sorted by").select_option("most trials first")
    expect(names).to_have_text(["large", "done", "waits"])
    page.get_by_label("Find").fill("another comm")
    expect(names).to_have_text(["waits"])
    expect(page.get_by_text("1 of 3 studies")).to_be_visible()
    assert page.url.endswith("#/?find=another+comm&sort=trials")
    page.reload()
    expect(names).to_have_text(["waits"])
    page.get_by_label("Find").fill("nothing like it")
    expect(page.get_by_text("0 of 3 studies")).to_be_visible()
    expect(names).to_have_count(0)
