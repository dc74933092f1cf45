"""Run `python -m autotune` without the seconds of its imports: run as `python -m tests.support.warm FD`.

`test_played_front_pages.py` starts commands without this server.
"""

import os
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO

from autotune.cli.command_table import COMMANDS
from tests.support.fork_server import Fork, ForkServer, run_as_python, serve

# Commands import what they need when they run; a session imports nearly everything.
_IMPORTED = (
    *("autotune.cli", "autotune.tuning.session", "rich.table"),
    *dict.fromkeys(
        f"autotune.cli.commands.{one.module}" for entry in COMMANDS for one in (entry, *entry.commands) if one.module
    ),
)


def autotune(
    folder: Path,
    *words: str,
    environment: Mapping[str, str] | None = None,
    lacks: Collection[str] = (),
    **variables: str,
) -> subprocess.CompletedProcess[str]:
    """Run `autotune` with these words in a folder, and wait for its end.

    `environment` replaces the environment of the tests; `variables` are added. The screen has 200 columns unless the
    environment sets COLUMNS. `lacks` are modules that cannot be imported.
    """
    given = os.environ if environment is None else environment
    lacking = f"import sys\nsys.modules.update(dict.fromkeys({[*lacks]}))\nfrom autotune.cli import main\nmain()"
    program = ["-c", lacking] if lacks else ["-m", "autotune"]
    ended = _server().run(folder, [*program, *words], {"COLUMNS": "200", **given, **variables})
    return subprocess.CompletedProcess(["autotune", *words], *ended)


def start(folder: Path, words: Sequence[str], environment: Mapping[str, str], log: IO[bytes]) -> Fork:
    """Start Python with these words, which begin with `-m MODULE` or `-c PROGRAM`; it prints to a file."""
    return _server().start(folder, words, environment, log, log)


@cache
def _server() -> ForkServer:
    return ForkServer([sys.executable, "-m", "tests.support.warm"])


def main() -> None:
    """Serve until the tests end; in a fork, run as Python with its words."""
    before = set(os.environ)
    for name in _IMPORTED:
        import_module(name)
    words = serve(int(sys.argv[1]), before)
    if words is not None:
        run_as_python(words)


if __name__ == "__main__":
    main()
