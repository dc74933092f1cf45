"""A stand-in for qsub, qstat, qdel and pbsnodes of PBS 14.1 and OpenPBS 20.0, 22.05 or 23.06 (`version`)."""

import os
import pwd
import re
import shlex
import sys
import textwrap
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, letters, seconds
from tests.launchers.fakes.pbs_answers import ANSWERS, COMMENTS, ENDS, HELD, NEWEST, ONE_BY_ONE, REFUSALS, WITHOUT_E
from tests.launchers.fakes.state import Record, State

_SERVER = "pbshost"
_VALUES, _FLAGS = "NPqlrjoeASmMvWkpaCJu", "VhIzX"
_OF_NODES = frozenset({"ncpus", "mem", "ngpus", "mpiprocs", "ompthreads", "vmem", "host", "arch"})
_OF_JOBS = frozenset({"select", "place", "walltime", "software", "cput", "pmem", "file"})
_QUEUE = "generic"
_MAXIMUM_NAME = 230


def _refusal(state: State, answer: str, /, **values: object) -> RefusedError:
    return ANSWERS.refusal(answer, state.switch("version"), server=_SERVER, queue=_QUEUE, **values)


def _usage(command: str) -> RefusedError:
    # The letter is known only when it is parsed.
    return ANSWERS.refusal("usage", None, command=command, option="{}")


def qsub(words: list[str], state: State) -> int:
    """Submit a script."""
    unknown = _usage("qsub")
    given, others = letters(words, _VALUES, _FLAGS, unknown)
    state.connect()
    if state.switch("away") is not None:
        raise _refusal(state, "away", command="qsub")
    if len(others) != 1:
        raise RefusedError(2, "qsub: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise _refusal(state, "no script", path=others[0]) from None
    lines = [word for line in directives(script, "#PBS ") for word in shlex.split(line)]
    written, more = letters(lines, _VALUES, _FLAGS, unknown)
    if more:
        raise _refusal(state, "directive", line=more[0])
    options = [*written, *given]
    job = _job(dict(options), _resources([value for letter, value in options if letter == "l"], state), script, state)
    why = state.switch("refuse")
    if why is not None:
        if why not in REFUSALS:
            raise KeyError(why)
        raise _refusal(state, why)
    most_cores = state.switch("resource limit")
    if most_cores is not None and job["cores"] > int(most_cores):
        raise _refusal(state, "resource limit")
    limit = state.switch("limit")
    if limit is not None and len(state.active()) >= int(limit):
        raise _refusal(state, "queue limit")
    print(state.submit(job, "{}." + _SERVER, "PBS_JOBID"))
    return 0


def _resources(given: list[str], state: State) -> dict[str, str]:
    """Parse the value of each `-l`. A site may have more resources, some without a value."""
    own = frozenset((state.switch("resources") or "").split())
    found: dict[str, str] = {}
    for text in given:
        # A comma separates resources, except inside the value of a list.
        for part in re.split(r",(?=\w+=)", text):
            name, equals, value = part.partition("=")
            if name not in _OF_NODES | _OF_JOBS | own or not (equals or name in own):
                raise _refusal(state, "resource", name=name)
            found[name] = value
    mixed = next((name for name in found if name in _OF_NODES), None) if {"select", "place"} & set(found) else None
    if mixed is not None:
        raise _refusal(state, "resource beside select", name=mixed)
    return found


def _job(options: dict[str, str], resources: dict[str, str], script: str, state: State) -> Record:
    name = options.get("N", "STDIN")
    if not re.fullmatch(r"[A-Za-z][\w.+-]*", name) or len(name) > _MAXIMUM_NAME:
        raise _refusal(state, "illegal", option="N")
    if options.get("j", "oe") not in {"oe", "eo", "n"}:
        raise _refusal(state, "illegal", option="j")
    if options.get("r", "n") not in {"y", "n"}:
        raise _refusal(state, "illegal", option="r")
    if ":" in options.get("o", "") or " " in options.get("o", ""):
        raise _refusal(state, "illegal", option="o")
    try:
        cores = _cores(resources)
    except ValueError:
        raise _refusal(state, "value", name="select") from None
    try:
        walltime_s = seconds(resources.get("walltime", "01:00:00"))
    except ValueError:
        raise _refusal(state, "value", name="walltime") from None
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
        "walltime_message": ANSWERS.text("wall time", None, seconds=int(walltime_s)),
        "after": options.get("W", "").removeprefix("depend=afterany:"),
        "only": re.findall(r":host=([\w-]+)", resources.get("select", "")),
        "environment": {
            "HOME": user.pw_dir,
            "USER": user.pw_name,
            "LOGNAME": user.pw_name,
            "SHELL": "/bin/bash",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "ENVIRONMENT": "BATCH",
            "PBS_ENVIRONMENT": "PBS_BATCH",
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
    """List jobs in full: with a connection for each, or with `-E` in one request."""
    flags = "xfw" if _version(state) in WITHOUT_E else "xfwE"
    given, numbers = letters(words, "", flags, _usage("qstat"))
    options = dict(given)
    if "f" not in options or not numbers:
        raise RefusedError(2, "qstat: this stand-in wants -f and the ids of jobs")
    together = "E" in options
    complaints = []
    shown = False
    for number in numbers:
        if not (together and number != numbers[0]):
            state.connect()
        job = state.read(number)
        if state.switch("away") is not None:
            complaints.append(_refusal(state, "qstat away"))
        elif "x" in options and state.switch("history") is None:
            complaints.append(_refusal(state, "no history", job=number))
        elif job is None:
            complaints.append(_refusal(state, "unknown job", command="qstat", job=number))
        elif job["state"] == "ended" and "x" not in options:
            complaints.append(_refusal(state, "finished", job=number))
        else:
            shown = True
            print(_in_full(job, state))
    if together:
        # The server answers for all jobs, and refuses only if it can show none.
        complaints = [] if shown else complaints[-1:]
    return ([0] + [_complain(error) for error in complaints])[-1]


def _version(state: State) -> str:
    return state.switch("version") or NEWEST


def _in_full(job: Record, state: State) -> str:
    waits = (state.switch("waits") or "queued") if job["state"] == "queued" else ""
    attributes = {"Job_Name": job["name"], "Job_Owner": "user@login", "job_state": _state(job), "queue": "workq"}
    if waits in HELD:
        attributes |= {"job_state": "H", "Hold_Types": HELD[waits]}
    if job["state"] == "ended":
        attributes |= {"Exit_status": str(_exit_status(job)), "substate": "92" if job["code"] == 0 else "93"}
        attributes |= ENDS.get(job["how"], {})
        if job["runner"] is None:
            del attributes["Exit_status"]
    attributes["comment"] = COMMENTS.text(waits or _told(job), None, cores=job["cores"], user="user", server=_SERVER)
    # PBS keeps the job's submission variables, whatever characters they contain.
    attributes["Variable_List"] = ",".join(f"{name}={value}" for name, value in job["environment"].items())
    lines = (f"    {name} = {value}" for name, value in attributes.items())
    return "\n".join([f"Job Id: {job['id']}", *map(_wrapped, lines), ""])


def _told(job: Record) -> str:
    """Return the comment of a job that has started or ended."""
    if job["runner"] is None:
        return "deleted before"
    if job["state"] == "running":
        return "running"
    if job["how"] in COMMENTS.by_name:
        return str(job["how"])
    return "finished" if job["code"] == 0 else "failed"


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
    """End jobs: in one request, or before 22.05 with a connection for each."""
    _, numbers = letters(words, "W", "x", _usage("qdel"))
    alone = _version(state) in ONE_BY_ONE
    code = 0
    for number in numbers:
        first = number == numbers[0]
        if alone or first:
            state.connect()
        if state.switch("away") is not None:
            code = _complain(_refusal(state, "qdel away")) if alone or first else code
        elif state.read(number) is None:
            code = _complain(_refusal(state, "unknown job", command="qdel", job=number))
        elif state.switch("owner") is not None:
            code = _complain(_refusal(state, "not the owner", job=number))
        elif not state.ask(number, "cancelled"):
            code = _complain(_refusal(state, "deleted before", job=number))
    return code


def _complain(error: RefusedError) -> int:
    print(error, file=sys.stderr)
    return error.code


def pbsnodes(words: list[str], state: State) -> int:
    """List the hosts (as OpenPBS 20 does, shortened)."""
    if words != ["-a"]:
        raise RefusedError(1, "pbsnodes: this stand-in wants -a")
    if state.switch("away") is not None:
        raise _refusal(state, "away", command="pbsnodes")
    cores = state.switch("slots") or "1"
    for host in (state.switch("host names") or "node1").split():
        print(ANSWERS.text("a host", None, host=host, cores=cores))
    return 0


COMMANDS = {"qsub": qsub, "qstat": qstat, "qdel": qdel, "pbsnodes": pbsnodes}
