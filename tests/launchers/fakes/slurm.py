"""A stand-in for sbatch, squeue, scancel, sinfo and scontrol of Slurm, from 20.11 to 25.05 (`version`)."""

import os
import pwd
import re
import shlex
import time
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, long_options, seconds
from tests.launchers.fakes.slurm_answers import ANSWERS, FINAL, HIDDEN, PASSING, SHOWN, VERSIONS
from tests.launchers.fakes.state import Record, State

_VALUES = {
    "job-name": "J",
    "account": "A",
    "partition": "p",
    "qos": "q",
    "nodes": "N",
    "ntasks": "n",
    "time": "t",
    "cpus-per-task": "c",
    "threads-per-core": "",
    "gpus": "G",
    "mem": "",
    "licenses": "L",
    "output": "o",
    "error": "e",
    "export": "",
    "constraint": "C",
    "ntasks-per-node": "",
    "chdir": "D",
    "comment": "",
    "gres": "",
    "dependency": "d",
    "nodelist": "w",
    "exclude": "x",
}
_FLAGS = {"parsable": "", "exclusive": "", "no-requeue": "", "requeue": "", "hold": "H"}
_PLACE = {"only": "nodelist", "never": "exclude"}
# The version since which a job learns its end, and squeue lists jobs of all states.
_TELLS_THE_END, _SHOWS_ALL = "23.02", "22.05"


def _refusal(state: State, answer: str, /, **values: object) -> RefusedError:
    return ANSWERS.refusal(answer, state.switch("version"), **values)


def _is_since(state: State, version: str) -> bool:
    return VERSIONS.index(state.switch("version") or VERSIONS[-1]) >= VERSIONS.index(version)


def sbatch(words: list[str], state: State) -> int:
    """Submit a script."""
    unknown = _refusal(state, "usage of sbatch", command="sbatch")
    given, others = long_options(words, _VALUES, _FLAGS, unknown)
    if state.switch("away") is not None:
        raise _refusal(state, "away")
    if not others:
        raise RefusedError(1, "sbatch: error: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise _refusal(state, "no file", path=others[0]) from None
    if not script.startswith("#!"):
        raise _refusal(state, "no script")
    lines = [word for line in directives(script, "#SBATCH ") for word in shlex.split(line)]
    written, more = long_options(lines, _VALUES, _FLAGS, unknown)
    if more:
        raise _refusal(state, "directive", word=more[0])
    job = _job(dict(written) | dict(given), script, state)
    if (why := state.switch("refuse")) is not None:
        if why not in PASSING | FINAL:
            raise KeyError(why)
        raise _refusal(state, why)
    number = state.submit(job)
    print(number if "parsable" in dict(given) else ANSWERS.text("submitted", state.switch("version"), job=number))
    return 0


def _job(options: dict[str, str], script: str, state: State) -> Record:
    numbers = {}
    for name in ("nodes", "ntasks", "cpus-per-task"):
        if not options.get(name, "1").isdigit() or int(options.get(name, "1")) < 1:
            raise _refusal(state, "number", value=options[name], option=name)
        numbers[name] = int(options.get(name, "1"))
    cores = numbers["ntasks"] * numbers["cpus-per-task"]
    if cores > int(state.switch("slots") or 1):
        raise _refusal(state, "processors")
    try:
        walltime_s = seconds(options.get("time", "60"))
    except ValueError:
        raise _refusal(state, "time") from None
    own = {
        "SLURM_JOB_NAME": options.get("job-name", "sbatch"),
        "SLURM_JOB_NUM_NODES": str(numbers["nodes"]),
        "SLURM_NTASKS": str(numbers["ntasks"]),
        "SLURM_CPUS_PER_TASK": str(numbers["cpus-per-task"]),
        "SLURM_SUBMIT_DIR": str(Path.cwd()),
        "SLURM_JOB_NODELIST": "node1",
    }
    if _is_since(state, _TELLS_THE_END):
        own["SLURM_JOB_END_TIME"] = str(int(time.time() + walltime_s))
    output = options.get("output", "slurm.out")
    if not output.startswith("/") and re.search(r"[%\\]", str(Path.cwd())):
        # The name is expanded as a pattern, and the job fails because its output cannot be opened.
        script, output = "#!/bin/sh\nexit 1\n", "/dev/null"
    home = {"HOME": pwd.getpwuid(os.getuid()).pw_dir, "USER": "user", "TMPDIR": "/tmp"}
    everything = dict(os.environ) if options.get("export", "ALL") == "ALL" else {}
    place = {name: options[key].split(",") for name, key in _PLACE.items() if key in options}
    if state.host_of(place) is None:
        raise _refusal(state, "nodes")
    return {
        **place,
        "script": script,
        "folder": str(Path.cwd()),
        "cwd": str(Path.cwd()),
        "name": own["SLURM_JOB_NAME"],
        "cores": cores,
        "walltime_s": walltime_s,
        "output": output,
        "environment": everything | home | own,
        "after": options.get("dependency", "").removeprefix("afterany:"),
    }


def squeue(words: list[str], state: State) -> int:
    """List jobs."""
    values, flags = {"states": "t", "format": "o", "jobs": "j"}, {"noheader": "h"}
    given, others = long_options(words, values, flags, _refusal(state, "usage", command="squeue"))
    options = dict(given)
    if others or "noheader" not in options or options.get("states") != "all" or "format" not in options:
        raise RefusedError(1, "squeue: error: this stand-in wants --noheader --states=all --format=... [--jobs=...]")
    if state.switch("away") is not None:
        raise _refusal(state, "squeue away")
    jobs = state.jobs()
    if "jobs" in options:
        wanted = options["jobs"].split(",")
        if not all(number.isdigit() for number in wanted):
            raise _refusal(state, "job ids", jobs=options["jobs"])
        jobs = [job for job in jobs if job["id"] in wanted]
        if not jobs and len(wanted) == 1:
            raise _refusal(state, "unknown job")
    for job in jobs:
        shown, reason = SHOWN.text(_told(job, state), state.switch("version")).split("|")
        if shown not in HIDDEN or _is_since(state, _SHOWS_ALL):
            print(_line(job, shown, reason, options["format"]))
    return 0


def _line(job: Record, shown: str, reason: str, form: str) -> str:
    fields = {"%i": job["id"], "%T": shown, "%r": reason, "%j": job["name"]}
    for field, value in fields.items():
        form = form.replace(field, value)
    if "%" in form:
        raise RefusedError(1, f"squeue: error: this stand-in does not know all of {form}")
    return form


def _told(job: Record, state: State) -> str:
    """Return the fields of squeue for a job; the switch `waits` gives the reason of a queued one."""
    if job["state"] == "queued":
        return state.switch("waits") or "queued"
    if job["state"] == "running":
        return "ending" if job["asked"] else "running"
    if job["how"] in SHOWN.by_name:
        return str(job["how"])
    return "finished" if job["code"] == 0 else "failed"


def scancel(words: list[str], state: State) -> int:
    """End jobs."""
    _, numbers = long_options(words, {}, {}, _refusal(state, "usage", command="scancel"))
    for number in numbers:
        if state.switch("away") is not None:
            raise _refusal(state, "scancel away", job=number)
        if not number.isdigit():
            raise _refusal(state, "job id", job=number)
        if state.switch("owner") is not None and state.read(number) is not None:
            raise _refusal(state, "not the owner", job=number)
        # scancel does not mention jobs that are unknown or have ended.
        state.ask(number, "cancelled")
    return 0


def sinfo(words: list[str], state: State) -> int:
    """List the nodes of the partitions; without --exact, merge unlike nodes (as seen on 22.05)."""
    if words[:3] != ["--noheader", "--exact", "--format=%P|%D|%c|%m|%G"]:
        raise RefusedError(1, "sinfo: error: this stand-in wants --noheader --exact --format=%P|%D|%c|%m|%G")
    print(state.switch("nodes") or "debug*|1|8|16000|(null)")
    return 0


def scontrol(words: list[str], state: State) -> int:
    """Show the federation; print nothing without one (as seen on 22.05)."""
    if words != ["show", "federation"]:
        raise RefusedError(1, "scontrol: error: this stand-in shows the federation only")
    print(state.switch("federation") or "", end="")
    return 0


COMMANDS = {"sbatch": sbatch, "squeue": squeue, "scancel": scancel, "sinfo": sinfo, "scontrol": scontrol}
