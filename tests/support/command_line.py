"""Run `autotune` in this process; `tests.support.warm` runs it in another one."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner, Result

from autotune.cli.app import app, main


def invoke(*words: str, catch_exceptions: bool = True, **variables: str) -> Result:
    """Run `autotune` with these words in the current folder, on a screen of 200 columns unless COLUMNS is set."""
    columns = os.environ.get("COLUMNS", "200")
    return CliRunner().invoke(app, words, env={"COLUMNS": columns, **variables}, catch_exceptions=catch_exceptions)


def run_main(*words: str) -> "CompletedProcess[str]":
    """Run `autotune` as `invoke` does, but report mistakes by message and exit code, as the program does."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    arguments = ["autotune", *words]
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", arguments):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
