"""The page for everybody: no barrier that axe-core finds, by keyboard alone, in the dark, and at a phone's width."""

import re

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import DESKTOP, PHONE, until

pytestmark = pytest.mark.full

NARROW = {"width": 360, "height": 740}
LONG = "a-study-with-a-name-that-is-longer-than-a-phone-is-wide-and-has-no-space"
VIEWS = {
    "list": "#/",
    "empty": "#/",
    "start": "#/",
    "extend": "#/studies/done",
    "delete": "#/studies/done",
    "study": "#/studies/done",
    "running": "#/studies/qe",
    "pictures": "#/studies/done/pictures/progress",
    "all pictures": "#/studies/done/pictures",
    "slices": "#/studies/done/pictures/slices",
    "importance": "#/studies/done/pictures/importance",
    "ablation": "#/studies/done/pictures/ablation",
    "trials": "#/studies/done/trials",
    "trial": "#/studies/done/trials/4",
    "script": "#/studies/done/script",
    "log": "#/studies/done/log",
    "compare": "#/compare?of=done&of=qe",
    "predictions": "#/predictions",
    "sign-in": "#/",
    "nothing": "#/no/such/page",
}
DIALOGS = {"extend": "More trials", "delete": "Delete"}
COUNTED = {"trials": ("tbody tr", 12), "compare": (".plot [data-role=series]", 2)}
AXE = """async only => (await axe.run(document, {resultTypes: ['violations'], ...only})).violations
    .filter(one => ['serious', 'critical'].includes(one.impact))
    .map(one => [one.id, ...one.nodes.map(node => node.html + ' ' + node.failureSummary)])"""
# A theme changes colours only, so the rules about anything else need one theme.
RULES = {"light": {}, "dark": {"runOnly": ["color-contrast", "link-in-text-block"]}}
WIDER = """() => [document.documentElement.scrollWidth - innerWidth,
    [...document.querySelectorAll('main *')].filter(one => one.getBoundingClientRect().right > innerWidth + 1
        && !one.closest('.scroll, pre, svg, .tabs')).map(one => one.outerHTML.slice(0, 99))]"""


def prepare(fake, page, view):
    """Wait until a view shows what it has."""
    if view == "start":
        page.get_by_role("button", name="Start a study").click()
        expect(page.get_by_role("dialog").get_by_text("5 parameters")).to_be_visible()
    elif view in DIALOGS:
        page.get_by_text("More", exact=True).click()
        page.get_by_role("button", name=DIALOGS[view]).click()
    elif view == "predictions":
        expect(page.get_by_label("Machine").locator("option")).to_have_count(3)
        page.get_by_role("button", name="Predict").click()
        expect(page.get_by_role("heading", name="Proposals for")).to_be_visible()
    elif "/pictures" in VIEWS[view] or view in {"study", "running"}:
        figures = page.locator("figure:visible")
        expect(figures).to_have_count({"study": 3, "all pictures": 5}.get(view, 1))
        for figure in figures.all():
            expect(figure).to_have_attribute("aria-busy", "false")
            figure.get_by_text("The figures as a table").click()
    elif view in COUNTED:
        expect(page.locator(COUNTED[view][0])).to_have_count(COUNTED[view][1])
    elif view == "trial":
        expect(page.get_by_role("region", name="Command")).to_be_visible()
    elif view in {"script", "log"}:
        expect(page.locator("pre")).not_to_be_empty()
    elif view == "list":
        expect(page.get_by_role("link", name=LONG)).to_be_visible()


def filled(fake, view):
    if view == "sign-in":
        fake.token = "right"
    if view != "empty":
        fake.add("done", "finished", 12)
        fake.add("qe", "running", 4, budget=10_000, held=True)
        fake.add("broken", "failed", 5, message="pw.x 6.7MaX is not the one that was measured: 7.2")
        fake.add(LONG, "stopped", 7, managed=False)


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_has_a_barrier_or_runs_over(fake, new_page, axe, keep, view):
    filled(fake, view)
    page, guard = new_page(fake.url, VIEWS[view], color_scheme="light")
    guard.expected.append("status of 401")
    prepare(fake, page, view)
    page.evaluate(axe)
    found = {}
    for width, viewport in {"desktop": DESKTOP, "phone": PHONE}.items():
        page.set_viewport_size(viewport)
        for theme, rules in RULES.items():
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            expect(page.locator("html")).to_have_attribute("data-theme", theme)
            found[width, theme] = page.evaluate(AXE, rules)
            keep(page, f"{view}-{width}-{theme}")
    assert {where: violations for where, violations in found.items() if violations} == {}
    page.set_viewport_size(NARROW)
    assert page.evaluate(WIDER) == [0, []]


def test_by_keyboard_alone(fake, new_page):  # noqa: PLR0915  one path through the page
    page, _ = new_page(fake.url)
    expect(page.get_by_text("No study yet.")).to_be_visible()
    press = page.keyboard.press

    def tab_to(locator, most=30):
        for _ in range(most):
            press("Tab")
            if locator.evaluate("one => one === document.activeElement"):
                return
        pytest.fail(f"Tab does not reach {locator}")

    press("Tab")
    skip = page.get_by_role("link", name="Skip to the content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    press("Enter")
    expect(page.locator("main")).to_be_focused()
    start = page.get_by_role("button", name="Start a study")
    tab_to(start)
    assert start.evaluate("one => getComputedStyle(one).outlineStyle") == "solid"
    press("Enter")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_label("Study")).to_be_focused()
    expect(dialog.get_by_text("5 parameters")).to_be_visible()
    for _ in range(12):
        press("Tab")
        inside = (
            "!document.activeElement.closest('header, main > :not(dialog)') || document.activeElement === document.body"
        )
        assert page.evaluate(inside), "Tab does not leave the dialog"
    press("Escape")
    expect(start).to_be_focused()
    press("Enter")
    expect(dialog.get_by_text("5 parameters")).to_be_visible()
    tab_to(dialog.get_by_label("Trials"))
    page.keyboard.type("500")
    press("Enter")
    expect(page.get_by_role("heading", name="qe")).to_be_visible()
    expect(page.locator("main")).to_be_focused()
    expect(page.locator(".badge")).to_have_text("running")

    pause = page.get_by_role("button", name="Pause")
    tab_to(pause)
    press("Enter")
    expect(page.locator(".badge")).to_have_text("paused")
    expect(pause).to_be_focused()
    tab_to(page.get_by_role("button", name="Resume"))
    press("Space")
    expect(page.locator(".badge")).to_have_text("running")
    tab_to(page.get_by_role("link", name="Trials"))
    press("Enter")
    expect(page.get_by_role("heading", name="Trials")).to_be_visible()
    tab_to(page.get_by_role("button", name="Speed-up"))
    press("Enter")
    expect(page.get_by_role("columnheader", name="Speed-up")).to_have_attribute("aria-sort", "ascending")
    table = page.get_by_role("region", name="Trials, table")
    # Too wide for its table, not narrow enough for cards.
    page.set_viewport_size({"width": 760, "height": 844})
    table.focus()
    # A key that comes before the page has its new size scrolls nothing.
    until(page, lambda: press("ArrowRight") or table.evaluate("one => one.scrollLeft") > 0)


def test_on_a_phone_trials_are_cards_with_value_and_configuration_in_sight(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/trials", PHONE)
    table = page.get_by_role("table", name="Trials")
    rows = table.get_by_role("row")
    expect(rows).to_have_count(12)
    best = rows.filter(has_text="best")
    for cell in (best.get_by_role("rowheader"), best.get_by_text("2.004"), best.locator("code")):
        box = cell.bounding_box()
        assert box["x"] >= 0
        assert box["x"] + box["width"] <= PHONE["width"]
    assert max(row.bounding_box()["height"] for row in rows.all()) < 100
    page.get_by_label("Sorted by").select_option("least value first")
    expect(rows.first.get_by_role("rowheader")).to_contain_text("best")


def test_on_paper_there_is_nothing_to_press_and_no_picture_is_cut(fake, new_page, keep):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done", color_scheme="light")
    figures = page.locator("figure:visible")
    expect(figures).to_have_count(3)
    for figure in figures.all():
        expect(figure).to_have_attribute("aria-busy", "false")
    page.emulate_media(media="print")
    assert page.locator("button:visible, nav:visible, select:visible, summary:visible").count() == 0
    expect(page.get_by_role("heading", name="Verdict")).to_be_visible()
    page.evaluate("document.querySelector('main').style.width = '600px'")
    # At once: a browser that prints does not wait for another drawing.
    assert page.evaluate("document.querySelector('.plot svg').getBoundingClientRect().width") <= 600
    keep(page, "study-print")


def test_a_screen_reader_hears_of_states_and_not_of_every_trial(fake, new_page):
    study = fake.add("qe", "running", 2, budget=6, held=True)
    page, _ = new_page(fake.url)
    expect(page.get_by_text("2 of 6")).to_be_visible()
    page.evaluate("""() => {
        globalThis.heard = [];
        const note = () => heard.push(document.getElementById('announcer').textContent);
        new MutationObserver(note).observe(document.getElementById('announcer'), {childList: true});
    }""")
    study.held = False
    expect(page.locator("#announcer")).to_have_text("qe is finished")
    assert page.evaluate("heard") == ["qe is finished"]
    live = page.locator("main [aria-live], main [role=status], main [role=alert]")
    assert [text for text in live.all_inner_texts() if re.search(r"\d", text)] == []


def test_nothing_moves_for_those_who_do_not_want_it(fake, new_page):
    page, _ = new_page(fake.url, reduced_motion="reduce")
    button = page.get_by_role("button", name="Start a study")
    assert button.evaluate("one => getComputedStyle(one).transitionDuration") == "0s"
