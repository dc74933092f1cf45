"""Print a report as PDF with a browser of this machine."""

import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from autotune.errors import CannotRunHereError
from launchers.software.ask import ask

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "microsoft-edge")
"""Browsers that can print without a window; Firefox cannot."""

_TIMEOUT_S = 120


def to_pdf(html: str) -> bytes:
    """Return a document as PDF.

    Raises:
        CannotRunHereError: No browser that prints without a window was found, or it did not print.
    """
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        msg = (
            f"--pdf needs one of {', '.join(BROWSERS)} to print the report, and none was found: install one, or open "
            "the HTML report in any browser and print it"
        )
        raise CannotRunHereError(msg)
    with TemporaryDirectory(prefix="autotune-report-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(html, encoding="utf-8")
        said = _print(browser, page, printed)
        if not printed.is_file() or printed.stat().st_size == 0:
            msg = f"--pdf: {browser} printed nothing{said}; open the HTML report in a browser and print it"
            raise CannotRunHereError(msg)
        return printed.read_bytes()


def _print(browser: str, page: Path, printed: Path) -> str:
    """Print a page into a file; return the browser's last message."""
    command = [browser, "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"]
    # The browser's sandbox does not start for root. It is not needed: the page is this report, which has no script.
    command += ["--no-sandbox"] if os.geteuid() == 0 else []
    command += [f"--user-data-dir={page.parent / 'profile'}", f"--print-to-pdf={printed}", page.as_uri()]
    try:
        ended = ask(command, _TIMEOUT_S)
    except TimeoutError:
        return f" in {_TIMEOUT_S} s"
    except OSError as error:
        return f" ({error.strerror})"
    lines = ended.complaint.strip().splitlines()
    return f" ({lines[-1]})" if lines else ""
