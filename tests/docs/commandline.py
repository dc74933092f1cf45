"""The command line as the pages use it."""

import subprocess
import sys
from pathlib import Path

from tests.support import warm


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
