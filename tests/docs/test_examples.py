"""Examples in Python that show their results have them."""

import doctest

import pytest

from tests.docs.page import PAGES, Page

WITH_EXAMPLES = [name for name in sorted(PAGES) if any(one.language == "pycon" for one in Page.read(name).blocks)]


@pytest.mark.parametrize("name", WITH_EXAMPLES)
def test_examples_print_the_output_on_the_page(name):
    runner, told = doctest.DocTestRunner(optionflags=doctest.REPORT_NDIFF), []
    names: dict[str, object] = {}
    for block in Page.read(name).blocks:
        if block.language == "pycon":
            parsed = doctest.DocTestParser().get_doctest(block.text, names, name, name, block.place)
            # Keep the names that a block defines for the next one.
            runner.run(parsed, out=told.append, clear_globs=False)
            names = parsed.globs
    assert runner.tries > 0
    assert not runner.failures, "".join(told)


def test_the_explanation_of_the_statistics_is_among_them():
    assert "docs/statistics.md" in WITH_EXAMPLES
