import pytest

from autotune.asktell import AskTell
from autotune.asktell.lease import LeaseClock
from tests.support.asking import external


@pytest.fixture
def clock():
    return [1000.0]


@pytest.fixture
def study(sqlite, clock):
    with AskTell.open(external(), sqlite, clock=LeaseClock("", 0.0, lambda: clock[0])) as opened:
        yield opened
