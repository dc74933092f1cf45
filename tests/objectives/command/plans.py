"""Plans of a command that does nothing, and what is wrong with them."""

import sys
from pathlib import Path

import pytest

from objectives.base import PlanError
from objectives.command import plan

ARGV = [sys.executable, "-c", "pass"]


def planned(**options):
    """Return the plan with these options."""
    return plan({"argv": ARGV, **options}, machine={}, run_job=lambda job: None, folder=Path("/nowhere"))


def errors(**options) -> list[str]:
    """Return the lines of the error that these options make."""
    with pytest.raises(PlanError) as caught:
        planned(**options)
    return str(caught.value).splitlines()
