"""Simulate a machine with two cores of two hardware threads each."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest


def two_cores(folder: Path, patch: pytest.MonkeyPatch, allowed: Iterable[int] = range(4)) -> None:
    """Make processors 0 and 2 the first core, 1 and 3 the second; this process may use the `allowed` ones."""
    for cpu in range(4):
        topology = folder / f"cpu{cpu}" / "topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(f"{cpu % 2},{cpu % 2 + 2}\n", encoding="ascii")
    usable = set(allowed)
    patch.setattr("launchers.cpus.CPUS", str(folder))
    patch.setattr(os, "sched_getaffinity", lambda _: set(usable))
