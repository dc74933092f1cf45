"""A report as PDF, printed by a fake browser."""

import pytest

from autotune.errors import CannotRunHereError
from autotune.report.printing import to_pdf

PRINTS = """#!/bin/sh
for one in "$@"; do
    case $one in --print-to-pdf=*) out=${one#*=} ;; file://*) page=${one#file://} ;; esac
done
printf '%%PDF of %s' "$(cat "$page")" > "$out"
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr("autotune.report.printing.BROWSERS", ("paper-browser",))

    def install(script):
        (tmp_path / "paper-browser").write_text(script)
        (tmp_path / "paper-browser").chmod(0o755)

    return install


def test_a_browser_prints_the_report(installed):
    installed(PRINTS)
    assert to_pdf("<h1>Study ä</h1>") == "%PDF of <h1>Study ä</h1>".encode()


def test_without_a_browser_the_error_says_what_to_do(installed):
    with pytest.raises(CannotRunHereError, match="needs one of paper-browser to print"):
        to_pdf("<p>")


def test_a_browser_that_prints_nothing_is_quoted(installed):
    installed("#!/bin/sh\necho 'no room left' >&2\nexit 1\n")
    with pytest.raises(CannotRunHereError, match=r"paper-browser printed nothing \(no room left\)"):
        to_pdf("<p>")
