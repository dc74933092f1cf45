"""A sample of `benchmarks/chaos.py`: processes of real sessions are killed at random instants."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support.kills.campaign import Request, start, targets

pytestmark = [pytest.mark.full, pytest.mark.cores(1)]


@pytest.mark.parametrize(
    "target", ["local coordinator", "local supervisor", "ranks start command", "server server", "server load"]
)
def test_killed_at_random_instants_nothing_is_lost_doubled_left_or_different(target):
    if target not in targets():
        pytest.skip("this machine cannot run the session")
    with TemporaryDirectory(prefix="k", dir="/tmp", ignore_cleanup_errors=True) as folder:
        reports = list(start(Request([target], events=2), Path(folder)))
    assert sum(report.events for report in reports) == 2
    assert [report.harm for report in reports if report.harm] == []
