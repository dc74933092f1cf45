"""Packages and environments of Spack: `spack load --sh` prints its changes, which are parsed here, not run.

Source: spack.cmd.load and spack.util.environment of https://spack.readthedocs.io.
"""

import re
import shlex
from collections.abc import Mapping, Sequence

from launchers.software.changes import Changes
from launchers.software.query import run_query

# Spack reads its whole database, often from a slow file system.
_PATIENCE_S = 300.0
_NAME = re.compile(r"[A-Za-z_]\w*")


def run_spack(spack: str, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return the output of `spack ARGUMENTS`.

    Raises:
        QueryError: The command failed or did not answer.
    """
    reply = run_query([spack, *arguments], f"spack {' '.join(arguments)}", environment, _PATIENCE_S)
    if reply.exit_code != 0:
        raise reply.error
    return reply.text


def parse_exports(text: str) -> Changes:
    """Parse lines such as `export PATH=/a:/b;` and `unset NAME;`; ignore others, which do not affect programs."""
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
