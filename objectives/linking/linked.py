"""What a program is linked to at run time."""

import errno
import os
import re
import shutil
import subprocess
from pathlib import Path

from launchers.software.transient_errors import is_transient

_TIMEOUT_S = 30


def linked_libraries(program: Path, library_path: str | None = None) -> dict[str, Path | None]:
    """Return what `program` is linked to at run time, by library name; None for a library that is not found.

    A program that is linked statically, or that `ldd` does not read, has none.

    Raises:
        OSError: it cannot be asked now: without its libraries the program would be another one.
    """
    ldd = shutil.which("ldd")
    if ldd is None:
        return {}
    environment = dict(os.environ)
    if library_path is not None:
        environment["LD_LIBRARY_PATH"] = library_path
    try:
        run = subprocess.run(
            [ldd, str(program)], capture_output=True, text=True, timeout=_TIMEOUT_S, check=False, env=environment
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(errno.ETIMEDOUT, f"ldd did not answer within {_TIMEOUT_S} s", str(program)) from error
    except OSError as error:
        if is_transient(error):
            raise
        return {}
    found: dict[str, Path | None] = {}
    for line in run.stdout.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow:
            found[name] = None if rest.startswith("not found") else Path(re.sub(r" \(0x[0-9a-f]+\)$", "", rest))
    return found
