"""A sample of `benchmarks/faults.py`: the N-th system call of a session fails, or the session dies there."""

import pytest

from tests.support.faults import library
from tests.support.faults.campaign import Request, start

# Known: an output that cannot be opened, for want of descriptors or memory, counts as one without a result.
FAULTS = tuple(fault.name for fault in library.FAULTS if not fault.name.startswith(("EMFILE", "ENOMEM")))

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(library.why_not() is not None, reason=str(library.why_not())),
]


@pytest.mark.timeout(600)
def test_whatever_call_fails_nothing_is_lost_doubled_left_or_different(tmp_path):
    events = dict(start(Request(faults=FAULTS, seconds=45.0, events=60), tmp_path))
    assert events
    assert {event: harm for event, harm in events.items() if harm} == {}
