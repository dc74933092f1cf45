"""A stand-in for qsub, qstat and qdel of Grid Engine, made from what Son of Grid Engine 8.1.9 answers."""

import os
import pwd
import re
import shlex
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, seconds
from tests.launchers.fakes.state import Record, State

_AWAY = (
    "error: commlib error: got select error (Connection refused)\n"
    '{}unable to send message to qmaster using port 6444 on host "master": got send error'
)
_REFUSED = "Unable to run job: {}\nExiting."
# Options of qsub(1) with a value, those with two, and those without.
_VALUES = frozenset({"-N", "-wd", "-P", "-q", "-l", "-j", "-o", "-S", "-r", "-A", "-M", "-m", "-p"})
_FLAGS = frozenset({"-terse", "-cwd", "-notify", "-h"})
_RESOURCES = frozenset({"h_rt", "s_rt", "h_vmem", "mem_free", "gpu", "exclusive", "slots"})
_REFUSALS = {
    "queue limit": "job rejected: only 1 jobs are allowed per user (current job count: 1)",
    "account": 'job rejected: the requested project "proj" does not exist',
}
_STATES = {"queued": "qw", "running": "r"}


def qsub(words: list[str], state: State) -> int:
    """Submit a script."""
    given, others = _options(words)
    if len(others) != 1:
        raise RefusedError(1, "this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise RefusedError(1, _REFUSED.format(f"Error opening {others[0]}: No such file or directory")) from None
    written, more = _options([word for line in directives(script, "#$ ") for word in shlex.split(line)])
    if more:
        raise RefusedError(1, f'qsub: Invalid option "{more[0]}"')
    if state.switch("away") is not None:
        raise RefusedError(1, _AWAY.format("Unable to run job: ") + "\nExiting.")
    job = _job([*written, *given], script, state)
    if (why := state.switch("refuse")) is not None:
        raise RefusedError(1, _REFUSED.format(_REFUSALS[why]))
    number = state.submit(job, variable="JOB_ID")
    print(number if ("-terse", "") in given else f'Your job {number} ("{job["name"]}") has been submitted')
    return 0


def _options(words: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
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
            raise RefusedError(2, f'qsub: invalid option argument "{name}"')
    return found, rest


def _job(given: list[tuple[str, str]], script: str, state: State) -> Record:
    options = dict(given)
    name = options.get("-N", "job.sh")
    if name[:1].isdigit():
        message = f'denied: "{name}" is not a valid object name (cannot start with a digit)'
        raise RefusedError(1, _REFUSED.format(message))
    resources = dict(part.partition("=")[::2] for flag, value in given if flag == "-l" for part in value.split(","))
    for resource in resources:
        if resource not in _RESOURCES:
            raise RefusedError(1, _REFUSED.format(f'unknown resource "{resource}"'))
    environment_name, _, slots = options.get("-pe", " 1").partition(" ")
    if environment_name not in {"", "smp", "mpi"}:
        message = f'job rejected: the requested parallel environment "{environment_name}" does not exist'
        raise RefusedError(1, _REFUSED.format(message))
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
        "output": options.get("-o", f"{name}.o"),
        "notify": "-notify" in options,
        "environment": own | ({"PE_HOSTFILE": str(hosts)} if environment_name else {}),
    }


def qstat(words: list[str], state: State) -> int:
    """Show all jobs that have not ended."""
    if words != ["-xml"]:
        raise RefusedError(1, "this stand-in wants -xml")
    if state.switch("away") is not None:
        raise RefusedError(1, _AWAY.format("error: "))
    jobs = state.active()
    print("<?xml version='1.0'?>\n<job_info>\n  <queue_info>")
    print("\n".join(_listed(job) for job in jobs if job["state"] == "running"))
    print("  </queue_info>\n  <job_info>")
    print("\n".join(_listed(job) for job in jobs if job["state"] == "queued"))
    print("  </job_info>\n</job_info>")
    return 0


def _listed(job: Record) -> str:
    letters = ("d" if job["asked"] else "") + _STATES[job["state"]]
    return f"""\
    <job_list state="{"pending" if job["state"] == "queued" else "running"}">
      <JB_job_number>{job["id"]}</JB_job_number>
      <JAT_prio>0.50000</JAT_prio>
      <JB_name>{job["name"]}</JB_name>
      <state>{letters}</state>
      <slots>{job["cores"]}</slots>
    </job_list>"""


def qdel(words: list[str], state: State) -> int:
    """End jobs; what it complains of goes to standard output."""
    if not words or not all(word.isdigit() for word in words):
        raise RefusedError(1, "this stand-in wants the numbers of jobs")
    if state.switch("away") is not None:
        raise RefusedError(1, _AWAY.format("error: "))
    code = 0
    for number in words:
        job = state.read(number)
        if job is None or job["state"] == "ended":
            print(f'denied: job "{number}" does not exist')
            code = 1
        elif job["asked"]:
            print(f"job {number} is already in deletion")
        else:
            state.ask(number, "cancelled")
            said = "has registered the job {} for deletion" if job["state"] == "running" else "has deleted job {}"
            print(f"root {said.format(number)}")
    return code


COMMANDS = {"qsub": qsub, "qstat": qstat, "qdel": qdel}
