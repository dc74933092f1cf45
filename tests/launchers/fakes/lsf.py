"""A stand-in for bsub, bjobs and bkill of IBM Spectrum LSF 10.1."""

import os
import pwd
import re
import shlex
import sys
from pathlib import Path

from tests.launchers.fakes.lsf_answers import ANSWERS, SHOWN
from tests.launchers.fakes.options import RefusedError, directives
from tests.launchers.fakes.state import Record, State

# LSF's options have one letter or several after a single hyphen.
_VALUES = frozenset({"J", "P", "q", "sla", "n", "R", "gpu", "W", "env", "o", "oo", "e", "eo", "M", "m"})
_FLAGS = frozenset({"x", "rn", "r", "H"})
_REFUSALS = frozenset({"queue limit", "busy", "account"})
_FIELDS = ("jobid", "stat", "exit_code", "exit_reason", "pend_reason")


def _refusal(answer: str, /, **values: object) -> RefusedError:
    return ANSWERS.refusal(answer, None, **values)


def bsub(words: list[str], state: State) -> int:
    """Submit the script on standard input."""
    options, others = _options(words)
    if others:
        raise RefusedError(255, "bsub: this stand-in wants its script on standard input")
    script = sys.stdin.read()
    if not script:
        raise RefusedError(255, "bsub: this stand-in wants a script")
    written, more = _options([word for line in directives(script, "#BSUB ") for word in shlex.split(line)])
    if more:
        raise RefusedError(255, f"bsub: this stand-in wants no {more[0]}")
    if state.switch("away") is not None:
        raise _refusal("away")
    job = _job(written | options, script)
    if (why := state.switch("refuse")) is not None:
        if why not in _REFUSALS:
            raise KeyError(why)
        raise _refusal(why)
    print(ANSWERS.text("submitted", None, job=state.submit(job)))
    return 0


def _options(words: list[str]) -> tuple[dict[str, str], list[str]]:
    found: dict[str, str] = {}
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)[1:]
        if name in _FLAGS:
            found[name] = ""
        elif name in _VALUES and rest:
            # Several -R must all hold.
            found[name] = f"{found.get('R', '')}{rest.pop(0)}" if name == "R" else rest.pop(0)
        else:
            raise RefusedError(255, f"bsub: this stand-in does not know -{name}")
    return found, rest


def _job(options: dict[str, str], script: str) -> Record:
    limit = re.fullmatch(r"(?:(\d+):)?(\d+)", options.get("W", "60"))
    if limit is None:
        raise RefusedError(255, f"bsub: this stand-in does not know -W {options['W']}")
    if not options.get("n", "1").isdigit():
        raise RefusedError(255, f"bsub: this stand-in does not know -n {options['n']}")
    if "[" in options.get("J", ""):
        raise RefusedError(255, f"bsub: this stand-in does not know -J {options['J']}")
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
        "only": options.get("m", "").split(),
        "never": re.findall(r"hname!='([^']+)'", options.get("R", "")),
        "walltime_s": 3600 * int(limit[1] or 0) + 60 * int(limit[2]),
        "output": options.get("oo", options.get("o", "lsf.out")),
        "environment": caller | {"HOME": user.pw_dir, "USER": user.pw_name} | own,
    }


def bjobs(words: list[str], state: State) -> int:
    """List jobs."""
    if words[:3] != ["-a", "-noheader", "-o"] or len(words) < 5:
        raise RefusedError(255, "bjobs: this stand-in wants -a -noheader -o FORMAT and the ids of jobs")
    *fields, delimiter = words[3].split()
    if tuple(fields) != _FIELDS or (match := re.fullmatch(r"delimiter='(.)'", delimiter)) is None:
        raise RefusedError(255, f"bjobs: this stand-in does not know all of {words[3]}")
    if state.switch("away") is not None:
        raise _refusal("away")
    code = 0
    for number in words[4:]:
        job = state.read(number)
        if job is None:
            print(ANSWERS.text("unknown job", None, job=number), file=sys.stderr)
            code = 255
        else:
            print(match[1].join((number, *_shown(job))))
    return code


def _shown(job: Record) -> list[str]:
    name = job["state"]
    if name == "ended":
        name = job["how"] if job["how"] in SHOWN.by_name else "failed" if job["code"] else "finished"
    return SHOWN.text(name, None, code=(job.get("code") or 0) % 256).split("|")


def bkill(words: list[str], state: State) -> int:
    """End jobs."""
    if not words or any(not word.isdigit() for word in words):
        raise RefusedError(255, "bkill: this stand-in wants the numbers of jobs")
    if state.switch("away") is not None:
        raise _refusal("away")
    code = 0
    for number in words:
        if state.read(number) is None:
            print(ANSWERS.text("not there", None, job=number), file=sys.stderr)
            code = 255
        elif state.ask(number, "cancelled"):
            print(ANSWERS.text("killed", None, job=number))
        else:
            print(ANSWERS.text("over", None, job=number), file=sys.stderr)
            code = 255
    return code


COMMANDS = {"bsub": bsub, "bjobs": bjobs, "bkill": bkill}
