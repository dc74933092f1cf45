"""`autotune` in this process, for what needs no process of its own; `tests.support.warm` gives a command one."""

import os

from typer.testing import CliRunner, Result

from autotune.cli.app import app


def invoke(*words: str, catch_exceptions: bool = True, **variables: str) -> Result:
    """Run `autotune` with these words, in the current folder, with a screen of 200 columns unless one is set."""
    columns = os.environ.get("COLUMNS", "200")
    return CliRunner().invoke(app, words, env={"COLUMNS": columns, **variables}, catch_exceptions=catch_exceptions)
