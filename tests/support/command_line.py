"""`autotune` in this process, for what needs no process of its own; `tests.support.warm` gives a command one."""

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from subprocess import CompletedProcess
from unittest.mock import patch

from typer.testing import CliRunner, Result

from autotune.cli.app import app, main


def invoke(*words: str, catch_exceptions: bool = True, **variables: str) -> Result:
    """Run `autotune` with these words, in the current folder, with a screen of 200 columns unless one is set."""
    columns = os.environ.get("COLUMNS", "200")
    return CliRunner().invoke(app, words, env={"COLUMNS": columns, **variables}, catch_exceptions=catch_exceptions)


def run_main(*words: str) -> "CompletedProcess[str]":
    """Run `autotune` with these words as `invoke` does, and turn a mistake into its message and exit code, too."""
    out, err, code = io.StringIO(), io.StringIO(), 0
    arguments = ["autotune", *words]
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "argv", arguments):
        try:
            main()
        except SystemExit as ended:
            code = int(ended.code or 0)
    return CompletedProcess(arguments, code, out.getvalue(), err.getvalue())
