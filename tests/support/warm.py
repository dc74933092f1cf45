"""Run `python -m autotune` without the seconds of its imports: run as `python -m tests.support.warm FD`.

`test_played_front_pages.py` starts commands without this server, as do tests that kill sessions.
"""

import os
import runpy
import subprocess
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from autotune.cli.command_table import COMMANDS
from tests.support.fork_server import ForkServer, serve

# Commands import what they need when they run; a session imports nearly everything.
_IMPORTED = (
    *("autotune.cli", "autotune.tuning.session", "autotune.execution.ray_executor", "rich.table"),
    *dict.fromkeys(
        f"autotune.cli.commands.{one.module}" for entry in COMMANDS for one in (entry, *entry.commands) if one.module
    ),
)
_servers: list[ForkServer] = []


def autotune(
    folder: Path, *words: str, environment: Mapping[str, str] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run `autotune` with these words in a folder, and wait for its end.

    `environment` replaces the environment of the tests; `variables` are added. The screen has 200 columns unless the
    environment sets COLUMNS.
    """
    given = os.environ if environment is None else environment
    if not _servers or _servers[-1].is_closed:
        _servers.append(ForkServer([sys.executable, "-m", "tests.support.warm"]))
    return subprocess.CompletedProcess(
        ["autotune", *words], *_servers[-1].run(folder, words, {"COLUMNS": "200", **given, **variables})
    )


def main() -> None:
    """Serve until the tests end; in a fork, run as `python -m autotune`."""
    before = set(os.environ)
    for name in _IMPORTED:
        import_module(name)
    words = serve(int(sys.argv[1]), before)
    if words is not None:
        sys.argv = ["autotune", *words]
        runpy.run_module("autotune", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
