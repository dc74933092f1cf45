"""`python -m autotune`: as the command `autotune`, with the modules of one installation only."""

# pathlib would be imported from the current folder.
# ruff: noqa: PTH109, PTH120, PTH121
import os
import sys


def _leave_current_folder() -> None:
    """Take the current folder off the search path, where `python -m` puts it before all others.

    Packages there may have the names of ours, or of those that we need. So far only `autotune` itself is imported: it
    must not be one of them, since the processes that it starts would import another.
    """
    try:
        current = os.getcwd()
    except OSError:
        return
    if sys.flags.safe_path or sys.path[0] != current:
        return
    del sys.path[0]
    here = os.path.dirname(__file__)
    specs = (finder.find_spec("autotune", None) for finder in sys.meta_path)
    installed = next((os.path.dirname(spec.origin) for spec in specs if spec and spec.origin), None)
    if installed is None or not os.path.samefile(installed, here):
        other = "no autotune is installed" if installed is None else f"{installed} is installed"
        sys.exit(
            f"autotune: python -m autotune would start {here} of the current folder, but {other}, and that one makes "
            f"the runs: use the command autotune, or install this folder ({sys.executable} -m pip install -e .)"
        )


if __name__ == "__main__":
    _leave_current_folder()
    from autotune.cli import main

    main()
