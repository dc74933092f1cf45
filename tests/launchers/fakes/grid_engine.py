"""A stand-in for qsub, qstat and qdel of Grid Engine, written from answers of Son of Grid Engine 8.1.9."""

import os
import pwd
import re
import shlex
from pathlib import Path

from tests.launchers.fakes.grid_engine_answers import ANSWERS
from tests.launchers.fakes.options import RefusedError, directives, seconds
from tests.launchers.fakes.state import Record, State

# Options of qsub(1) with a value, those with two, and those without.
_VALUES = frozenset({"-N", "-wd", "-P", "-q", "-l", "-j", "-o", "-S", "-r", "-A", "-M", "-m", "-p"})
_FLAGS = frozenset({"-terse", "-cwd", "-notify", "-h"})
_RESOURCES = frozenset({"h_rt", "s_rt", "h_vmem", "mem_free", "gpu", "exclusive", "slots", "hostname"})
_REFUSALS = frozenset({"queue limit", "cluster limit", "account", "queue"})
_STATES = {"queued": "qw", "running": "r"}


def _refusal(answer: str, /, **values: object) -> RefusedError:
    return ANSWERS.refusal(answer, None, **values)


def qsub(words: list[str], state: State) -> int:
    """Submit a script."""
    given, others = _options(words, "option")
    if len(others) != 1:
        raise RefusedError(1, "this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise _refusal("no file", path=others[0]) from None
    written, more = _options([word for line in directives(script, "#$ ") for word in shlex.split(line)], "directive")
    if more:
        raise _refusal("directive", word=more[0])
    if state.switch("away") is not None:
        raise _refusal("away")
    job = _job([*written, *given], script, state)
    if (why := state.switch("refuse")) is not None:
        if why not in _REFUSALS:
            raise KeyError(why)
        raise _refusal(why)
    number = state.submit(job, variable="JOB_ID")
    terse = ("-terse", "") in given
    print(number if terse else ANSWERS.text("submitted", None, job=number, name=job["name"]))
    return 0


def _options(words: list[str], unknown: str) -> tuple[list[tuple[str, str]], list[str]]:
    found: list[tuple[str, str]] = []
    rest = list(words)
    while rest and rest[0].startswith("-"):
        name = rest.pop(0)
        if name in _FLAGS:
            found.append((name, ""))
        elif name in _VALUES and rest:
            found.append((name, rest.pop(0)))
        elif name == "-pe" and len(rest) > 1:
            found.append((name, f"{rest.pop(0)} {rest.pop(0)}"))
        else:
            raise _refusal(unknown, word=name)
    return found, rest


def _job(given: list[tuple[str, str]], script: str, state: State) -> Record:
    options = dict(given)
    name = options.get("-N", "job.sh")
    if name[:1].isdigit():
        raise _refusal("name", name=name)
    resources = dict(part.partition("=")[::2] for flag, value in given if flag == "-l" for part in value.split(","))
    for resource in resources:
        if resource not in _RESOURCES:
            raise _refusal("resource", name=resource)
    environment_name, _, slots = options.get("-pe", " 1").partition(" ")
    if environment_name not in {"", "smp", "mpi"}:
        raise _refusal("environment", name=environment_name)
    if re.search(r"[\s:$]", options.get("-o", "") + options.get("-wd", "")):
        raise RefusedError(1, "this stand-in wants a -wd and an -o without blanks, colons and dollar signs")
    hosts = state.folder / "hosts"
    hosts.write_text(f"node1 {slots} all.q@node1 UNDEFINED\n")
    user = pwd.getpwuid(os.getuid())
    own = {"HOME": user.pw_dir, "USER": user.pw_name, "LOGNAME": user.pw_name, "SHELL": "/bin/bash"}
    own |= {"PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": "/tmp", "SGE_ROOT": "/opt/sge", "QUEUE": "all.q"}
    own |= {"NSLOTS": slots, "JOB_NAME": name, "SGE_O_WORKDIR": str(Path.cwd()), "SGE_TASK_ID": "undefined"}
    return {
        "script": script,
        "folder": str(Path.cwd()),
        "cwd": options.get("-wd", str(Path.cwd()) if "-cwd" in options else user.pw_dir),
        "name": name,
        "cores": int(slots),
        "walltime_s": seconds(resources.get("h_rt", "01:00:00")),
        **_place(resources.get("hostname", "")),
        "output": options.get("-o", f"{name}.o"),
        "notify": "-notify" in options,
        "environment": own | ({"PE_HOSTFILE": str(hosts)} if environment_name else {}),
    }


def _place(hosts: str) -> Record:
    """Parse an expression: one host, or hosts to avoid."""
    if not hosts:
        return {}
    return {"never": hosts[2:-1].split("|")} if hosts.startswith("!(") else {"only": [hosts]}


def qstat(words: list[str], state: State) -> int:
    """List all jobs that have not ended, or say why some wait."""
    if words != ["-xml"] and (len(words) != 2 or words[0] != "-j"):
        raise RefusedError(1, "this stand-in wants -xml, or -j NUMBER,...")
    if state.switch("away") is not None:
        raise _refusal("qstat away")
    jobs = state.active()
    if words[0] == "-j":
        wanted = [job for job in jobs if job["id"] in words[1].split(",")]
        print("".join(ANSWERS.text("details", None, job=job["id"], name=job["name"]) for job in wanted), end="")
        return 0 if wanted else 1
    print(ANSWERS.text("list", None))
    print("\n".join(_listed(job) for job in jobs if job["state"] == "running"))
    print(ANSWERS.text("list of waiting", None))
    print("\n".join(_listed(job) for job in jobs if job["state"] == "queued"))
    print(ANSWERS.text("end of list", None))
    return 0


def _listed(job: Record) -> str:
    letters = ("d" if job["asked"] else "") + _STATES[job["state"]]
    kind = "pending" if job["state"] == "queued" else "running"
    return ANSWERS.text("listed", None, job=job["id"], name=job["name"], kind=kind, letters=letters, slots=job["cores"])


def qdel(words: list[str], state: State) -> int:
    """End jobs; complaints go to standard output."""
    if not words or not all(word.isdigit() for word in words):
        raise RefusedError(1, "this stand-in wants the numbers of jobs")
    if state.switch("away") is not None:
        print(ANSWERS.text("qdel away", None))
        raise _refusal("connection")
    code = 0
    for number in words:
        job = state.read(number)
        if job is None or job["state"] == "ended":
            print(ANSWERS.text("unknown job", None, job=number))
            code = 1
        elif job["asked"]:
            print(ANSWERS.text("again", None, job=number))
        else:
            state.ask(number, "cancelled")
            print(ANSWERS.text("registered" if job["state"] == "running" else "deleted", None, job=number))
    return code


COMMANDS = {"qsub": qsub, "qstat": qstat, "qdel": qdel}
