"""A browser for the tests of the page: Debian's Chromium, driven by Playwright.

`AUTOTUNE_SCREENSHOTS=FOLDER` keeps pictures of every view. Without a browser, or without axe-core, tests are skipped.
"""

import os
import re
import shutil
import sys
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from tests.autotune.service.fakeservice import FakeService

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)
DESKTOP = {"width": 1280, "height": 900}
PHONE = {"width": 390, "height": 844}
# A machine that is busy with other tests is slow.
PATIENCE_MS = 60_000


@dataclass
class Guard:
    """What a page must not do: complain, or ask another host. `expected` are patterns of complaints that are meant."""

    host: str
    expected: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)

    def watch(self, page):
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", self._request)

    def _console(self, message):
        if message.type == "error":
            self.complaints.append(f"{message.text} {message.location.get('url', '')}".rstrip())

    def _request(self, request):
        address = urlsplit(request.url)
        if address.scheme in {"http", "https", "ws", "wss"} and address.netloc != self.host:
            self.foreign.append(request.url)

    def check(self):
        left = [one for one in self.complaints if not any(re.search(pattern, one) for pattern in self.expected)]
        assert left == []
        assert self.foreign == []


def until(page, condition):
    """Wait until a condition holds; the page's policy forbids Playwright's own way, which compiles text."""
    for _ in range(PATIENCE_MS // 50):
        if condition():
            return
        page.wait_for_timeout(50)
    pytest.fail("that did not come to hold")


@pytest.fixture(scope="package")
def browser():
    """Start the browser once for all tests of the page."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium here: apt-get install chromium")
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=found, args=list(ARGUMENTS))
        yield running
        running.close()


@pytest.fixture(scope="session")
def axe():
    """Return axe-core's source."""
    installed = Path(sys.prefix) / "share" / "autotune" / "page" / "node_modules" / "axe-core" / "axe.min.js"
    found = Path(os.environ.get("AUTOTUNE_AXE", installed))
    if not found.is_file():
        pytest.skip(f"no axe-core here: npm ci --prefix {installed.parents[2]}, with the files of requirements/page")
    return found.read_text(encoding="utf-8")


@pytest.fixture
def fake():
    """Provide a service that runs nothing."""
    with FakeService() as service:
        yield service


@pytest.fixture
def new_page(browser):
    """Return a function that opens a page of a service; at the end it must not have complained."""
    opened = []

    def open_page(url, path="", viewport=DESKTOP, **options) -> tuple[Page, Guard]:
        context = browser.new_context(viewport=viewport, **options)
        guard = Guard(urlsplit(url).netloc)
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        guard.watch(page)
        opened.append((context, guard))
        page.goto(url + path)
        return page, guard

    yield open_page
    for context, guard in opened:
        context.close()
        guard.check()


@pytest.fixture(scope="session")
def keep():
    """Return a function that keeps a picture of a page, if a folder for them is given."""
    folder = os.environ.get("AUTOTUNE_SCREENSHOTS")

    def take(page, name, **options):
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.screenshot(path=str(Path(folder) / f"{name}.png"), **{"full_page": True, **options})

    return take
