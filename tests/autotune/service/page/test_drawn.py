"""What the page draws: ticks and words that can be read, what a point says, and pictures as files."""

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.autotune.service.page.conftest import DESKTOP, PHONE

pytestmark = pytest.mark.full

OUTSIDE = """() => {
    const svg = document.querySelector('.plot svg').getBoundingClientRect();
    return [...document.querySelectorAll('.plot text')].filter(one => {
        const {left, right, bottom} = one.getBoundingClientRect();
        return left < svg.left - 1 || right > svg.right + 1 || bottom > svg.bottom + 1;
    }).map(one => one.textContent);
}"""
# Of words on one line, those that run into the next one.
STRUCK = """() => [...document.querySelectorAll('.panel')].flatMap(panel => {
    const flat = [...panel.querySelectorAll('text')].filter(one => !one.hasAttribute('transform'));
    const boxes = flat.map(one => [one.textContent, one.getBoundingClientRect()]);
    return boxes.flatMap(([text, one], at) => boxes.slice(at + 1)
        .filter(([, two]) => one.left < two.right && two.left < one.right)
        .filter(([, two]) => one.top < two.bottom - 3 && two.top < one.bottom - 3)
        .map(([other]) => `${text} and ${other}`));
})"""


def drawn(page, picture):
    expect(page.locator("figure").first).to_have_attribute("aria-busy", "false")
    expect(page.get_by_role("img", name=picture)).to_be_visible()


@pytest.mark.parametrize("viewport", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("picture", ["Slices", "Ablation", "What matters"])
def test_every_word_of_a_picture_can_be_read(fake, new_page, keep, viewport, picture):
    fake.add("done", "finished", 12)
    name = {"What": "importance"}.get(first := picture.partition(" ")[0], first.lower())
    page, _ = new_page(fake.url, f"#/studies/done/pictures/{name}", viewport=viewport)
    drawn(page, picture)
    keep(page, f"drawn-{name}-{viewport['width']}")
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(STRUCK) == []
    if picture == "Slices":
        words = page.locator(".panel text").all_text_contents()
        assert {"unset", "openblas-openmp", "blis-pthread", "openblas-pthread"} <= set(words)


def test_nothing_is_between_two_trials(fake, new_page):
    fake.add("done", "finished", 3)
    page, _ = new_page(fake.url, "#/studies/done/pictures/progress")
    drawn(page, "Progress")
    across = page.locator(".panel text[text-anchor=middle]").all_text_contents()
    assert across == ["trial", "0", "1", "2"]


def test_a_point_says_what_it_is_and_leads_to_its_trial(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures/progress")
    drawn(page, "Progress")
    path = page.locator(".mark.points[data-role=trial]").get_attribute("d")
    # A circle begins at its left.
    x, y = map(float, path.removeprefix("M").partition("a")[0].split())
    svg = page.locator(".plot svg")
    svg.hover(position={"x": x + 4, "y": y})
    tip = page.locator(".tip")
    expect(tip).to_contain_text("trial 0: 3.34 s")
    svg.click(position={"x": x + 4, "y": y})
    expect(page.get_by_role("heading", name="Trial 0")).to_be_focused()


def test_a_picture_is_saved_as_svg_and_as_png(fake, new_page):
    fake.add("done", "finished", 12)
    page, _ = new_page(fake.url, "#/studies/done/pictures/slices")
    drawn(page, "Slices")
    files = {}
    for form in ("SVG", "PNG"):
        with page.expect_download() as saved:
            page.get_by_role("button", name=f"Save as {form}").click()
        files[saved.value.suggested_filename] = Path(saved.value.path()).read_bytes()
    svg, png = files["done-slices.svg"], files["done-slices.png"]
    assert svg.startswith(b"<svg")
    assert b"var(" not in svg, "outside the page nobody knows its colours"
    assert "Slices \u00b7 done \u00b7 node17".encode() in svg, "nor of what it is"
    assert png.startswith(b"\x89PNG")
    assert len(png) > 5000


def test_studies_are_compared_side_by_side(fake, new_page):
    fake.add("first", "finished", 12)
    fake.add("second", "finished", 7, machine="another one")
    fake.add("third", "waiting", 0, budget=10, held=True)
    page, _ = new_page(fake.url, "#/compare?of=first")
    expect(page.get_by_text("Choose two studies or more.")).to_be_visible()
    for name in ("second", "third"):
        page.get_by_role("checkbox", name=name).check()
    lines = page.locator(".plot .mark[data-role=series]")
    expect(lines).to_have_count(2)
    assert page.url.endswith("#/compare?of=first&of=second&of=third")
    table = page.get_by_role("region", name="Studies side by side")
    expect(table.get_by_role("row").first).to_have_text("firstsecondthird")
    expect(table.get_by_role("row", name=re.compile("^Machine"))).to_contain_text("another one")
    expect(table.get_by_role("row").filter(has_text="npool")).to_be_visible()
    page.get_by_role("checkbox", name="first").uncheck()
    expect(lines).to_have_count(1)
    page.get_by_role("link", name="second").click()
    expect(page.get_by_role("heading", name="second", level=1)).to_be_visible()
