"""The command lines of processes that run our own modules."""

import sys


def own_python(module: str, *words: str, python: str = sys.executable) -> list[str]:
    """Return the command line that runs a module, importing nothing from the current folder.

    Others may have left an `autotune` or a `json.py` in that folder, and users have packages named `objectives`.
    """
    return [python, "-P", "-m", module, *words]
