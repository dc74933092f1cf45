"""A stand-in for flux batch, flux jobs and flux cancel of flux-core 0.60, after its manual."""

import os
import sys
from pathlib import Path

from tests.launchers.fakes.options import RefusedError, directives, long_options
from tests.launchers.fakes.state import Record, State

_AWAY = "flux-{}: ERROR: Unable to connect to Flux: [Errno 2] No such file or directory"
_UNKNOWN = "flux-{0}: error: unrecognized arguments: {{}}"
_VALUES = {
    "job-name": "",
    "bank": "B",
    "queue": "q",
    "nodes": "N",
    "nslots": "n",
    "cores-per-slot": "c",
    "gpus-per-slot": "g",
    "time-limit": "t",
    "output": "",
    "error": "",
    "setattr": "",
    "requires": "",
}
_REFUSALS = {
    "queue limit": "[Errno 22] user has max submitted jobs",
    "account": "[Errno 22] no bank/userid combination found",
}
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_ENDS = {
    "cancelled": ("CANCELED", "", "cancel"),
    "timed out": ("TIMEOUT", "142", "timeout"),
    "preempted": ("FAILED", "", "preempt"),
    "node failed": ("FAILED", "", "node-failure"),
}


def flux(words: list[str], state: State) -> int:
    """Run one of its commands."""
    name, *rest = words
    commands = {"batch": _batch, "jobs": _jobs, "cancel": _cancel}
    if name not in commands:
        raise RefusedError(1, f"flux: `{name}' is not a flux command.  See 'flux --help'")
    if state.switch("away") is not None:
        raise RefusedError(1, _AWAY.format(name))
    return commands[name](rest, state)


def _batch(words: list[str], state: State) -> int:
    unknown = RefusedError(2, _UNKNOWN.format("batch"))
    given, others = long_options(words, _VALUES, {"exclusive": "x"}, unknown)
    if len(others) != 1:
        raise RefusedError(1, "flux-batch: ERROR: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError as error:
        raise RefusedError(1, f"flux-batch: ERROR: {error}") from None
    written, more = long_options(directives(script, "#flux: "), _VALUES, {"exclusive": "x"}, unknown)
    if more:
        raise RefusedError(2, _UNKNOWN.format("batch").format(more[0]))
    job = _job(dict(written) | dict(given), script)
    if (why := state.switch("refuse")) is not None:
        raise RefusedError(1, f"flux-batch: ERROR: {_REFUSALS[why]}")
    print("\u0192" + state.submit(job, "f{}Xy").removeprefix("f"))
    return 0


def _job(options: dict[str, str], script: str) -> Record:
    limit = options.get("time-limit", "1h")
    try:
        walltime_s = float(limit[:-1]) * _UNITS[limit[-1]]
        cores = int(options.get("nslots", "1")) * int(options.get("cores-per-slot", "1"))
    except (ValueError, KeyError) as error:
        raise RefusedError(1, f"flux-batch: ERROR: invalid value {error}") from None
    return {
        "script": script,
        "folder": str(Path.cwd()),
        "cwd": str(Path.cwd()),
        "name": options.get("job-name", "batch"),
        "cores": cores,
        "walltime_s": walltime_s,
        "output": options.get("output", "flux.out"),
        "environment": dict(os.environ) | {"FLUX_URI": "local:///nowhere"},
    }


def _jobs(words: list[str], state: State) -> int:
    flags = {"no-header": "n", "a": "a"}
    given, numbers = long_options(words, {"format": "o"}, flags, RefusedError(2, _UNKNOWN.format("jobs")))
    options = dict(given)
    if set(options) != {"a", "no-header", "format"} or not numbers:
        raise RefusedError(2, "flux-jobs: error: this stand-in wants -a --no-header --format=... and the ids of jobs")
    code = 0
    for number in numbers:
        job = state.read(number)
        if job is None:
            print(f"flux-jobs: ERROR: JobID {number} unknown job", file=sys.stderr)
            code = 1
        else:
            print(_line(job, options["format"]))
    return code


def _line(job: Record, form: str) -> str:
    shown, result, code, trouble = {"queued": "SCHED", "running": "RUN"}.get(job["state"], "INACTIVE"), "", "", ""
    if job["state"] == "ended":
        returned = job["code"] or 0
        plain = ("FAILED" if returned else "COMPLETED", str(128 - returned if returned < 0 else returned), "")
        result, code, trouble = _ENDS.get(job["how"], plain)
    fields = {"id.f58plain": job["id"], "state": shown, "result": result, "returncode": code}
    for name, value in (fields | {"exception.type": trouble}).items():
        form = form.replace("{" + name + "}", value)
    if "{" in form:
        raise RefusedError(1, f"flux-jobs: ERROR: Unknown format field in {form}")
    return form


def _cancel(words: list[str], state: State) -> int:
    _, numbers = long_options(words, {}, {}, RefusedError(2, _UNKNOWN.format("cancel")))
    code = 0
    for number in numbers:
        if not state.ask(number, "cancelled"):
            print(f"flux-cancel: ERROR: {number}: job is inactive or unknown job", file=sys.stderr)
            code = 1
    return code


COMMANDS = {"flux": flux}
