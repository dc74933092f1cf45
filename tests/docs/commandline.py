"""The command line as the pages use it, and what makes a study of theirs a short one."""

import subprocess
import sys
from pathlib import Path

from tests.support import warm

QUICK = [
    word
    for change in (
        "verdict.confidence=0.75",
        "verdict.pairs=3",
        "verdict.max_pairs=3",
        "verdict.rounds=2",
        "verdict.candidates=1",
        "repeats.max_runs=2",
        "repeats.warm_up_runs=0",
        "repeats.baseline_runs=2",
    )
    for word in ("--set", change)
]
"""What a study is given so that few runs settle it."""


def autotune(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run autotune in a folder, as a user does."""
    return subprocess.run(
        [sys.executable, "-m", "autotune", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def warm_autotune(folder: Path, words: list[str]) -> subprocess.CompletedProcess[str]:
    """Run autotune in a folder without the seconds that its imports take."""
    return warm.autotune(folder, *words)
