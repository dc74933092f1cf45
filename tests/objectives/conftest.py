"""Real endings of pw.x 6.7 (Debian 12, Open MPI 4.1.4), as a launcher would hand them over."""

from collections.abc import Callable
from pathlib import Path

import pytest

from launchers import EndReason, JobState, JobStatus, Usage
from objectives.base import Output

OUTPUTS = Path(__file__).parent / "outputs"

Ending = Callable[..., Output]


@pytest.fixture
def ending() -> Ending:
    def read(
        name: str,
        exit_code: int | None = 0,
        *,
        reason: EndReason = EndReason.EXITED,
        state: JobState = JobState.ENDED,
        message: str = "",
    ) -> Output:
        stderr = OUTPUTS / f"{name}.stderr"
        status = JobStatus(state, reason, exit_code, Usage(5.5, 10.0, 2**27), message)
        return Output(
            stdout=(OUTPUTS / f"{name}.stdout").read_text(),
            stderr=stderr.read_text() if stderr.exists() else "",
            status=status,
            folder=Path("/nowhere"),
        )

    return read
