"""A stand-in for qsub, qstat and qdel of OpenPBS 23.06."""

import os
import pwd
import re
import shlex
import sys
import textwrap
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, letters, seconds
from tests.launchers.fakes.state import Record, State

_SERVER = "pbshost"
_AWAY = "Connection refused\n{}: cannot connect to server pbshost (errno=111)"
_USAGE = "{0}: invalid option -- '{{}}'\nusage: {0} ..."

_VALUES, _FLAGS = "NPqlrjoeASmMvWkpaCJu", "VhIzX"
_OF_NODES = frozenset({"ncpus", "mem", "ngpus", "mpiprocs", "ompthreads", "vmem", "host", "arch"})
_OF_JOBS = frozenset({"select", "place", "walltime", "software", "cput", "pmem", "file", "qos"})
_REFUSALS = {
    "queue limit": (38, "qsub: would exceed queue generic's per-user limit of jobs in 'Q' state"),
    "account": (159, "qsub: Unauthorized Request "),
}
_MAXIMUM_NAME = 230
_ENDS = {
    "cancelled": {"Exit_status": "0", "substate": "91"},
    "timed out": {"Exit_status": "-29", "substate": "93", "comment": "Job run at ... and exceeded resource walltime"},
    "preempted": {"Exit_status": "0", "substate": "91", "comment": "Job preempted by deletion"},
    "node failed": {"Exit_status": "-20", "substate": "93", "comment": "node node1 is down"},
}


def qsub(words: list[str], state: State) -> int:
    """Submit a script."""
    unknown = RefusedError(2, _USAGE.format("qsub"))
    given, others = letters(words, _VALUES, _FLAGS, unknown)
    if state.switch("away") is not None:
        raise RefusedError(162, _AWAY.format("qsub"))
    if len(others) != 1:
        raise RefusedError(2, "qsub: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise RefusedError(1, f"qsub: script file:: {others[0]}: No such file or directory") from None
    lines = [word for line in directives(script, "#PBS ") for word in shlex.split(line)]
    written, more = letters(lines, _VALUES, _FLAGS, unknown)
    if more:
        raise RefusedError(2, f"qsub: directive error: {more[0]}")
    options = [*written, *given]
    job = _job(dict(options), _resources([value for letter, value in options if letter == "l"], state), script, state)
    if (why := state.switch("refuse")) is not None:
        raise RefusedError(*_REFUSALS[why])
    limit = state.switch("limit")
    if limit is not None and len(state.active()) >= int(limit):
        raise RefusedError(*_REFUSALS["queue limit"])
    print(state.submit(job, "{}." + _SERVER, "PBS_JOBID"))
    return 0


def _resources(given: list[str], state: State) -> dict[str, str]:
    """Read what stands after each `-l`. A site may know more resources, some without a value."""
    own = frozenset((state.switch("resources") or "").split())
    found: dict[str, str] = {}
    for text in given:
        # A comma parts resources, unless it is in the value of a list.
        for part in re.split(r",(?=\w+=)", text):
            name, equals, value = part.partition("=")
            if name not in _OF_NODES | _OF_JOBS | own or not (equals or name in own):
                raise RefusedError(187, f"qsub: Unknown resource Resource_List.{name}")
            found[name] = value
    mixed = next((name for name in found if name in _OF_NODES), None) if {"select", "place"} & set(found) else None
    if mixed is not None:
        message = f'-lresource= cannot be used with "select" or "place", resource is: {mixed}'
        raise RefusedError(170, f"qsub: {message}")
    return found


def _job(options: dict[str, str], resources: dict[str, str], script: str, state: State) -> Record:
    name = options.get("N", "STDIN")
    if not re.fullmatch(r"[A-Za-z][\w.+-]*", name) or len(name) > _MAXIMUM_NAME:
        raise RefusedError(2, "qsub: illegal -N value")
    if options.get("j", "oe") not in {"oe", "eo", "n"} or options.get("r", "n") not in {"y", "n"}:
        raise RefusedError(2, "qsub: illegal -j or -r value")
    if ":" in options.get("o", "") or " " in options.get("o", ""):
        raise RefusedError(2, "qsub: illegal -o value")
    try:
        cores = _cores(resources)
        walltime_s = seconds(resources.get("walltime", "01:00:00"))
    except ValueError as error:
        raise RefusedError(168, f"qsub: Illegal attribute or resource value {error}") from None
    user = pwd.getpwuid(os.getuid())
    nodes = state.folder / "nodes"
    nodes.write_text("node1\n" * cores)
    return {
        "script": script,
        "folder": str(Path.cwd()),
        "cwd": user.pw_dir,
        "name": name,
        "cores": cores,
        "walltime_s": walltime_s,
        "output": options.get("o", f"{name}.o"),
        "environment": {
            "HOME": user.pw_dir,
            "USER": user.pw_name,
            "LOGNAME": user.pw_name,
            "SHELL": "/bin/bash",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "ENVIRONMENT": "PBS_BATCH",
            "TMPDIR": "/tmp",
            "PBS_NODEFILE": str(nodes),
            "PBS_O_WORKDIR": str(Path.cwd()),
            "PBS_O_HOST": "login",
            "PBS_JOBNAME": name,
            "NCPUS": str(cores),
            "OMP_NUM_THREADS": str(cores),
        },
    }


def _cores(resources: dict[str, str]) -> int:
    if "select" not in resources:
        return int(resources.get("ncpus", "1"))
    cores = 0
    for chunk in resources["select"].split("+"):
        number, *parts = chunk.split(":")
        values = dict(part.split("=") for part in parts)
        if not set(values) <= _OF_NODES:
            raise ValueError(chunk)
        cores += int(number) * int(values.get("ncpus", "1"))
    return cores


def qstat(words: list[str], state: State) -> int:
    """Show jobs in full."""
    given, numbers = letters(words, "", "xfw", RefusedError(2, _USAGE.format("qstat")))
    options = dict(given)
    if "f" not in options or not numbers:
        raise RefusedError(2, "qstat: this stand-in wants -f and the ids of jobs")
    if state.switch("away") is not None:
        raise RefusedError(111, _AWAY.format("qstat"))
    code = 0
    for number in numbers:
        job = state.read(number)
        if "x" in options and state.switch("history") is None:
            code = _complain(36, f"qstat: PBS is not configured to maintain job history {number}")
        elif job is None:
            code = _complain(153, f"qstat: Unknown Job Id {number}")
        elif job["state"] == "ended" and "x" not in options:
            message = "Job has finished, use -x or -H to obtain historical job information"
            code = _complain(35, f"qstat: {number} {message}")
        else:
            print(_in_full(job))
    return code


def _in_full(job: Record) -> str:
    attributes = {"Job_Name": job["name"], "Job_Owner": "user@login", "job_state": _state(job), "queue": "workq"}
    if job["state"] == "ended":
        attributes |= {"Exit_status": str(_exit_status(job)), "substate": "92" if job["code"] == 0 else "93"}
        attributes |= _ENDS.get(job["how"], {})
        if job["runner"] is None:
            del attributes["Exit_status"]
    if job["state"] == "queued":
        attributes["comment"] = "Not Running: Insufficient amount of resource: ncpus"
    # PBS keeps what the job was submitted with, whatever signs are in it.
    attributes["Variable_List"] = ",".join(f"{name}={value}" for name, value in job["environment"].items())
    lines = (f"    {name} = {value}" for name, value in attributes.items())
    return "\n".join([f"Job Id: {job['id']}", *map(_wrapped, lines), ""])


def _wrapped(line: str) -> str:
    first, *rest = textwrap.wrap(line, 79, break_on_hyphens=False, drop_whitespace=False, replace_whitespace=False)
    return "\n".join([first, *(f"\t{part}" for part in rest)])


def _state(job: Record) -> str:
    if job["state"] == "running":
        return "E" if job["asked"] else "R"
    return {"queued": "Q", "ended": "F"}[job["state"]]


def _exit_status(job: Record) -> int:
    code = job["code"] or 0
    return 256 - code if code < 0 else code


def qdel(words: list[str], state: State) -> int:
    """End jobs."""
    _, numbers = letters(words, "W", "x", RefusedError(2, _USAGE.format("qdel")))
    if state.switch("away") is not None:
        raise RefusedError(111, _AWAY.format("qdel"))
    code = 0
    for number in numbers:
        if state.read(number) is None:
            code = _complain(153, f"qdel: Unknown Job Id {number}")
        elif not state.ask(number, "cancelled"):
            code = _complain(35, f"qdel: Job has finished {number}")
    return code


def _complain(code: int, message: str) -> int:
    print(message, file=sys.stderr)
    return code


COMMANDS = {"qsub": qsub, "qstat": qstat, "qdel": qdel}
