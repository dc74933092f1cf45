"""A stand-in for bsub, bjobs and bkill of IBM Spectrum LSF 10.1, after its manual."""

import os
import pwd
import re
import shlex
import sys
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives
from tests.launchers.fakes.state import Record, State

_AWAY = "Failed in an LSF library call: LIM is down; try later. Job not submitted."
# Words of LSF's options: one letter or several, with a single hyphen.
_VALUES = frozenset({"J", "P", "q", "sla", "n", "R", "gpu", "W", "env", "o", "oo", "e", "eo", "M"})
_FLAGS = frozenset({"x", "rn", "r", "H"})
_REFUSALS = {
    "queue limit": "Pending job threshold reached. Retrying will not help. Job not submitted.",
    "account": "Unauthorized user: User cannot use the project. Job not submitted.",
}
_ENDS = {
    "cancelled": ("130", "TERM_OWNER: job killed by owner"),
    "timed out": ("140", "TERM_RUNLIMIT: job killed after reaching LSF run time limit"),
    "preempted": ("131", "TERM_PREEMPT: job killed after preemption"),
    "node failed": ("255", "TERM_UNKNOWN: LSF cannot determine a termination reason"),
}
_FIELDS = ("jobid", "stat", "exit_code", "exit_reason", "pend_reason")


def bsub(words: list[str], state: State) -> int:
    """Submit the script on standard input."""
    options, others = _options(words)
    if others:
        raise RefusedError(255, "bsub: this stand-in wants its script on standard input")
    script = sys.stdin.read()
    if not script:
        raise RefusedError(255, "Empty job. Job not submitted.")
    written, more = _options([word for line in directives(script, "#BSUB ") for word in shlex.split(line)])
    if more:
        raise RefusedError(255, f"{more[0]}: Bad argument. Job not submitted.")
    if state.switch("away") is not None:
        raise RefusedError(255, _AWAY)
    job = _job(written | options, script)
    if (why := state.switch("refuse")) is not None:
        raise RefusedError(255, _REFUSALS[why])
    print(f"Job <{state.submit(job)}> is submitted to default queue <normal>.")
    return 0


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)[1:]
        if name in _FLAGS:
            found[name] = ""
        elif name in _VALUES and rest:
            found[name] = rest.pop(0)
        else:
            raise RefusedError(255, f"{name}: Illegal option. Job not submitted.")
    return found, rest


def _job(options: dict[str, str], script: str) -> Record:
    limit = re.fullmatch(r"(?:(\d+):)?(\d+)", options.get("W", "60"))
    if limit is None:
        raise RefusedError(255, f"{options['W']}: Bad runlimit specification. Job not submitted.")
    if not options.get("n", "1").isdigit():
        raise RefusedError(255, f"{options['n']}: Bad number of processors. Job not submitted.")
    if "[" in options.get("J", ""):
        raise RefusedError(255, f"{options['J']}: Bad job array specification. Job not submitted.")
    name = options.get("J", "job")
    caller = {} if options.get("env") == "none" else dict(os.environ)
    own = {"LSB_JOBNAME": name, "LSB_HOSTS": "node1", "LS_SUBCWD": str(Path.cwd())}
    user = pwd.getpwuid(os.getuid())
    return {
        "script": script,
        "folder": str(Path.cwd()),
        "cwd": str(Path.cwd()),
        "name": name,
        "cores": int(options.get("n", "1")),
        "walltime_s": 3600 * int(limit[1] or 0) + 60 * int(limit[2]),
        "output": options.get("oo", options.get("o", "lsf.out")),
        "environment": caller | {"HOME": user.pw_dir, "USER": user.pw_name} | own,
    }


def bjobs(words: list[str], state: State) -> int:
    """Show jobs."""
    if words[:3] != ["-a", "-noheader", "-o"] or len(words) < 5:
        raise RefusedError(255, "bjobs: this stand-in wants -a -noheader -o FORMAT and the ids of jobs")
    *fields, delimiter = words[3].split()
    if tuple(fields) != _FIELDS or (match := re.fullmatch(r"delimiter='(.)'", delimiter)) is None:
        raise RefusedError(255, f"bjobs: this stand-in does not know all of {words[3]}")
    if state.switch("away") is not None:
        raise RefusedError(255, "Failed in an LSF library call: Master LIM is down. Please wait ...")
    code = 0
    for number in words[4:]:
        job = state.read(number)
        if job is None:
            print(f"Job <{number}> is not found", file=sys.stderr)
            code = 255
        else:
            print(match[1].join(_line(job)))
    return code


def _line(job: Record) -> tuple[str, ...]:
    if job["state"] == "queued":
        return job["id"], "PEND", "-", "-", "Job slot limit reached;"
    if job["state"] == "running":
        return job["id"], "RUN", "-", "-", "-"
    if job["how"] == "exited" and job["code"] == 0:
        return job["id"], "DONE", "-", "-", "-"
    code, reason = _ENDS.get(job["how"], (str((job["code"] or 0) % 256), "-"))
    return job["id"], "EXIT", code, reason, "-"


def bkill(words: list[str], state: State) -> int:
    """End jobs."""
    if not words or any(not word.isdigit() for word in words):
        raise RefusedError(255, "bkill: Illegal job ID.")
    if state.switch("away") is not None:
        raise RefusedError(255, "Failed in an LSF library call: Master LIM is down. Please wait ...")
    code = 0
    for number in words:
        if state.read(number) is None:
            print(f"Job <{number}>: No matching job found", file=sys.stderr)
            code = 255
        elif state.ask(number, "cancelled"):
            print(f"Job <{number}> is being terminated")
        else:
            print(f"Job <{number}>: Job has already finished", file=sys.stderr)
            code = 255
    return code


COMMANDS = {"bsub": bsub, "bjobs": bjobs, "bkill": bkill}
