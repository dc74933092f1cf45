"""How the page writes numbers, times and configurations."""

import pytest

from tests.autotune.service.fakeservice import FakeService

pytestmark = pytest.mark.slow

CASES = [
    ("number", [3.34949], "3.349"),
    ("number", [12345.6], "12346"),
    ("number", [0.00001234], "1.234e-05"),
    ("number", [None], "\u2013"),
    ("duration", [0.349], "0.35 s"),
    ("duration", [59.6], "1 min 00 s"),
    ("duration", [725], "12 min 05 s"),
    ("duration", [183600], "2 d 3 h"),
    ("clock", [9.99], "9 s"),
    ("coreTime", [840], "840 core-s"),
    ("coreTime", [9000], "2.5 core-h"),
    ("counted", [1, "trial"], "1 trial"),
    ("counted", [0, "trial"], "0 trials"),
    ("configuration", [{"np": 2, "blas": None, "bind": "core"}], "np=2 bind=core"),
    ("configuration", [{}], "nothing set"),
    ("failures", [{"timed out": 2, "out of memory": 0}], "2 timed out"),
]


@pytest.fixture(scope="module")
def formats(browser):
    with FakeService() as service:
        page = browser.new_page()
        page.goto(service.url)
        yield lambda name, given: page.evaluate(
            "async ([name, given]) => (await import('/page/format.js'))[name](...given)", [name, given]
        )
        page.close()


@pytest.mark.parametrize(("name", "given", "wanted"), CASES)
def test_words(formats, name, given, wanted):
    assert formats(name, given) == wanted
