"""Recognise the program of a study by what it runs, since the study may have another name."""

import re
from collections.abc import Mapping
from pathlib import Path

from launchers.software.digest import text_digest

INTERPRETER = re.compile(r"(?:python|pypy|perl|ruby|julia|lua|tclsh|octave|node|(?:ba|da|k|z)?sh|Rscript)[\d.]*")
"""Matches the names of interpreters, which run a script."""

# These run another program, or a program in their arguments, so that they do not show which one is run.
_STARTERS = re.compile(
    r"env|time|nice|nohup|timeout|numactl|taskset|mpirun|mpiexec|orterun|srun|jsrun|aprun|true|echo|[gm]?awk|sed|make"
    r"|java|docker|podman|apptainer|singularity"
)


def program_marks(identity: Mapping[str, str]) -> tuple[str, ...]:
    """Return marks of the program in the identity of a command; two programs with a common mark are the same.

    A mark is the digest of a program or script, or its absolute path. If neither is known, it is the identity itself.
    """
    if not any(key.partition("[")[0] == "command" for key in identity):
        return ()
    digests = [word for key in ("program", "script") for word in identity.get(key, "").split(", ") if word]
    path = identity.get("command", "").split(maxsplit=1)[:1]
    marks = [word for word in (*digests, *(word for word in path if Path(word).is_absolute())) if _is_telling(word)]
    return tuple(marks) or (text_digest(repr(sorted(identity.items()))),)


def _is_telling(mark: str) -> bool:
    name = Path(mark.partition(" sha256:")[0]).name
    return INTERPRETER.fullmatch(name) is None and _STARTERS.fullmatch(name) is None
