"""A sample of `benchmarks/faults.py`: the N-th system call of a session fails, or the session dies there."""

import pytest

from tests.support.faults import library
from tests.support.faults.campaign import Request, start

# The service's client waits in real time until a lease ends whose answer was lost.
SESSIONS = tuple(name for name in Request.sessions if name != "service")

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(library.why_not() is not None, reason=str(library.why_not())),
]


def test_whatever_call_fails_nothing_is_lost_doubled_left_or_different(tmp_path):
    events = dict(start(Request(SESSIONS, seconds=45.0, events=60), tmp_path))
    assert events
    assert {event: harm for event, harm in events.items() if harm} == {}
