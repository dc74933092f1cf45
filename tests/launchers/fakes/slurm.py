"""A stand-in for sbatch, squeue and scancel of Slurm 22.05."""

import os
import pwd
import re
import shlex
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, long_options, seconds
from tests.launchers.fakes.state import Record, State

_AWAY = "Unable to contact slurm controller (connect failure)"
_FAILED = "sbatch: error: Batch job submission failed: {}"
_UNKNOWN = "{0}: unrecognized option '{{}}'\nTry \"{0} --help\" for more information"

_VALUES = {
    "job-name": "J",
    "account": "A",
    "partition": "p",
    "qos": "q",
    "nodes": "N",
    "ntasks": "n",
    "time": "t",
    "cpus-per-task": "c",
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
}
_FLAGS = {"parsable": "", "exclusive": "", "no-requeue": "", "requeue": "", "hold": "H"}
_REFUSALS = {
    "queue limit": (
        "sbatch: error: AssocMaxSubmitJobLimit\n"
        + _FAILED.format(
            "Job violates accounting/QOS policy (job submit limit, user's size and/or time limits)",
        )
    ),
    "account": _FAILED.format("Invalid account or account/partition combination specified"),
}
_ENDS = {
    "cancelled": ("CANCELLED", "None"),
    "timed out": ("TIMEOUT", "TimeLimit"),
    "preempted": ("PREEMPTED", "None"),
    "node failed": ("NODE_FAIL", "NodeDown"),
    "out of memory": ("OUT_OF_MEMORY", "OutOfMemory"),
}


def sbatch(words: list[str], state: State) -> int:
    """Submit a script."""
    unknown = RefusedError(255, _UNKNOWN.format("sbatch"))
    given, others = long_options(words, _VALUES, _FLAGS, unknown)
    if state.switch("away") is not None:
        raise RefusedError(1, _FAILED.format(_AWAY))
    if not others:
        raise RefusedError(1, "sbatch: error: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise RefusedError(1, f"sbatch: error: Unable to open file {others[0]}") from None
    if not script.startswith("#!"):
        raise RefusedError(1, "sbatch: error: This does not look like a batch script.")
    lines = [word for line in directives(script, "#SBATCH ") for word in shlex.split(line)]
    written, more = long_options(lines, _VALUES, _FLAGS, unknown)
    if more:
        raise RefusedError(1, f"sbatch: error: Invalid directive found in batch script: {more[0]}")
    job = _job(dict(written) | dict(given), script, state)
    if (why := state.switch("refuse")) is not None:
        raise RefusedError(1, _REFUSALS[why])
    number = state.submit(job)
    print(number if "parsable" in dict(given) else f"Submitted batch job {number}")
    return 0


def _job(options: dict[str, str], script: str, state: State) -> Record:
    numbers = {}
    for name in ("nodes", "ntasks", "cpus-per-task"):
        if not options.get(name, "1").isdigit() or int(options.get(name, "1")) < 1:
            raise RefusedError(255, f'sbatch: error: Invalid numeric value "{options[name]}" for --{name}.')
        numbers[name] = int(options.get(name, "1"))
    cores = numbers["ntasks"] * numbers["cpus-per-task"]
    if cores > int(state.switch("slots") or 1):
        raise RefusedError(1, _FAILED.format("More processors requested than permitted"))
    try:
        walltime_s = seconds(options.get("time", "60"))
    except ValueError:
        raise RefusedError(255, "sbatch: error: Invalid --time specification") from None
    own = {
        "SLURM_JOB_NAME": options.get("job-name", "sbatch"),
        "SLURM_JOB_NUM_NODES": str(numbers["nodes"]),
        "SLURM_NTASKS": str(numbers["ntasks"]),
        "SLURM_CPUS_PER_TASK": str(numbers["cpus-per-task"]),
        "SLURM_SUBMIT_DIR": str(Path.cwd()),
        "SLURM_JOB_NODELIST": "node1",
    }
    output = options.get("output", "slurm.out")
    if not output.startswith("/") and re.search(r"[%\\]", str(Path.cwd())):
        # It is taken for a pattern, and the job fails as its output cannot be opened.
        script, output = "#!/bin/sh\nexit 1\n", "/dev/null"
    home = {"HOME": pwd.getpwuid(os.getuid()).pw_dir, "USER": "user", "TMPDIR": "/tmp"}
    everything = dict(os.environ) if options.get("export", "ALL") == "ALL" else {}
    return {
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
    """Show jobs."""
    values, flags = {"states": "t", "format": "o", "jobs": "j"}, {"noheader": "h"}
    given, others = long_options(words, values, flags, RefusedError(1, _UNKNOWN.format("squeue")))
    options = dict(given)
    if others or "noheader" not in options or options.get("states") != "all" or "format" not in options:
        raise RefusedError(1, "squeue: error: this stand-in wants --noheader --states=all --format=... [--jobs=...]")
    if state.switch("away") is not None:
        raise RefusedError(1, f"slurm_load_jobs error: {_AWAY}")
    jobs = state.jobs()
    if "jobs" in options:
        wanted = options["jobs"].split(",")
        if not all(number.isdigit() for number in wanted):
            raise RefusedError(1, f"squeue: error: Invalid job id: {options['jobs']}")
        jobs = [job for job in jobs if job["id"] in wanted]
        if not jobs and len(wanted) == 1:
            raise RefusedError(1, "slurm_load_jobs error: Invalid job id specified")
    for job in jobs:
        print(_line(job, options["format"]))
    return 0


def _line(job: Record, form: str) -> str:
    shown, reason = _state(job)
    fields = {"%i": job["id"], "%T": shown, "%r": reason, "%j": job["name"]}
    for field, value in fields.items():
        form = form.replace(field, value)
    if "%" in form:
        raise RefusedError(1, f"squeue: error: this stand-in does not know all of {form}")
    return form


def _state(job: Record) -> tuple[str, str]:
    if job["state"] == "queued":
        return "PENDING", "Resources"
    if job["state"] == "running":
        return "COMPLETING" if job["asked"] else "RUNNING", "None"
    return _ENDS.get(job["how"]) or (("COMPLETED", "None") if job["code"] == 0 else ("FAILED", "NonZeroExitCode"))


def scancel(words: list[str], state: State) -> int:
    """End jobs."""
    _, numbers = long_options(words, {}, {}, RefusedError(1, _UNKNOWN.format("scancel")))
    for number in numbers:
        if state.switch("away") is not None:
            raise RefusedError(8, f"scancel: error: Kill job error on job id {number}: {_AWAY}")
        if not number.isdigit():
            raise RefusedError(1, f"scancel: error: Invalid job id {number}")
        # It says nothing of jobs that have ended, or that nobody knows.
        state.ask(number, "cancelled")
    return 0


COMMANDS = {"sbatch": sbatch, "squeue": squeue, "scancel": scancel}
