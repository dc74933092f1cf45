"""Packages and environments of Spack: `spack load --sh` prints what it changes, which is read here and not run.

Source: spack.cmd.load and spack.util.environment of https://spack.readthedocs.io.
"""

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence

from launchers.software.changes import Changes

# Spack looks at its whole database, and is often on a slow file system.
_PATIENCE_S = 300.0
_NAME = re.compile(r"[A-Za-z_]\w*")


class SpackError(Exception):
    """Spack could not do what was asked; the message is its own."""


def asked(spack: str, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return what `spack ARGUMENTS` prints.

    Raises:
        SpackError: it failed, or did not answer.
    """
    try:
        done = subprocess.run(
            [spack, *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_S,
            check=False,
            env=dict(environment),
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"spack {' '.join(arguments)}: {error}"
        raise SpackError(msg) from error
    if done.returncode != 0:
        complaint = done.stderr.decode(errors="replace").strip()
        raise SpackError(complaint or f"spack {' '.join(arguments)} ended with exit code {done.returncode}")
    return done.stdout.decode(errors="replace")


def exports(text: str) -> Changes:
    """Read lines such as `export PATH=/a:/b;` and `unset NAME;`; others change nothing that a program sees."""
    variables: dict[str, str] = {}
    unset: set[str] = set()
    for line in text.splitlines():
        try:
            words = shlex.split(line.strip().rstrip(";"))
        except ValueError:
            continue
        match words:
            case ["export", word] if "=" in word:
                name, _, value = word.partition("=")
                if _NAME.fullmatch(name):
                    variables[name] = value
                    unset.discard(name)
            case ["unset", name] if _NAME.fullmatch(name):
                variables.pop(name, None)
                unset.add(name)
            case _:
                continue
    return Changes(variables, frozenset(unset))
