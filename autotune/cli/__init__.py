"""The command line."""

# pathlib might be imported from the current folder.
# ruff: noqa: PTH100, PTH109
import os
import sys


def main() -> None:
    """Run the command line, with the same modules in this process and in those that it starts."""
    try:
        _settle_search_path()
        from autotune.cli.app import main as run

        run()
    except KeyboardInterrupt:
        # As `ExitCode.INTERRUPTED`, whose import may be what was interrupted.
        sys.exit(130)


def _settle_search_path() -> None:
    """Ignore empty entries of PYTHONPATH, and make relative ones absolute, here and in processes that are started.

    Python takes an empty entry, as `PYTHONPATH=$PYTHONPATH:/my/modules` makes one, for the current folder. A relative
    one means another folder in each process.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    try:
        named = [os.path.abspath(entry) for entry in given if entry]
        current = os.getcwd()
    except OSError:  # the current folder was removed
        return
    if len(given) > 1 and "" in given and current not in named and current in sys.path:
        sys.path.remove(current)
    if named:
        os.environ["PYTHONPATH"] = os.pathsep.join(named)
    else:
        os.environ.pop("PYTHONPATH", None)
