"""A stand-in for flux batch, flux jobs and flux cancel of flux-core 0.60, written from its source."""

import os
import sys
from pathlib import Path

from tests.launchers.fakes.flux_answers import ANSWERS, SHOWN
from tests.launchers.fakes.options import RefusedError, directives, long_options
from tests.launchers.fakes.state import Record, State

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
_REFUSALS = frozenset({"queue limit", "account"})
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def _refusal(answer: str, /, **values: object) -> RefusedError:
    return ANSWERS.refusal(answer, None, **values)


def _unknown(command: str) -> RefusedError:
    # The option is known only when it is parsed.
    return _refusal("option", command=command, option="{}")


def flux(words: list[str], state: State) -> int:
    """Run one of its commands."""
    name, *rest = words
    commands = {"batch": _batch, "jobs": _jobs, "cancel": _cancel}
    if name not in commands:
        raise _refusal("command", name=name)
    if state.switch("away") is not None:
        raise _refusal("away", command=name)
    return commands[name](rest, state)


def _batch(words: list[str], state: State) -> int:
    unknown = _unknown("batch")
    given, others = long_options(words, _VALUES, {"exclusive": "x"}, unknown)
    if len(others) != 1:
        raise RefusedError(1, "flux-batch: ERROR: this stand-in wants the name of a script")
    try:
        script = Path(others[0]).read_text()
    except OSError:
        raise RefusedError(1, "flux-batch: ERROR: this stand-in cannot read the script") from None
    written, more = long_options(directives(script, "#flux: "), _VALUES, {"exclusive": "x"}, unknown)
    if more:
        raise _refusal("option", command="batch", option=more[0])
    job = _job(dict(written) | dict(given), script)
    if (why := state.switch("refuse")) is not None:
        if why not in _REFUSALS:
            raise KeyError(why)
        raise _refusal(why)
    print("\u0192" + state.submit(job, "f{}Xy").removeprefix("f"))
    return 0


def _job(options: dict[str, str], script: str) -> Record:
    limit = options.get("time-limit", "1h")
    try:
        walltime_s = float(limit[:-1]) * _UNITS[limit[-1]]
        cores = int(options.get("nslots", "1")) * int(options.get("cores-per-slot", "1"))
    except (ValueError, KeyError) as error:
        raise RefusedError(1, f"flux-batch: ERROR: this stand-in does not know {error}") from None
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
    flags = {"no-header": "n"}
    given, numbers = long_options(words, {"format": "o"}, flags, _unknown("jobs"))
    options = dict(given)
    if set(options) != {"no-header", "format"} or not numbers:
        raise RefusedError(2, "flux-jobs: error: this stand-in wants --no-header --format=... and the ids of jobs")
    for number in numbers:
        job = state.read(number)
        if job is None:
            print(ANSWERS.text("unknown job", None, job=number), file=sys.stderr)
        else:
            print(_line(job, options["format"]))
    return 0


def _line(job: Record, form: str) -> str:
    returned = job.get("code") or 0
    answer = SHOWN.text(_told(job), None, code=128 - returned if returned < 0 else returned)
    shown, result, code, trouble = answer.split("|")
    fields = {"id.f58plain": job["id"], "state": shown, "result": result, "returncode": code}
    for name, value in (fields | {"exception.type": trouble}).items():
        form = form.replace("{" + name + "}", value)
    if "{" in form:
        raise RefusedError(1, f"flux-jobs: ERROR: this stand-in does not know all of {form}")
    return form


def _told(job: Record) -> str:
    """Return the lines of flux jobs about a job."""
    if job["state"] != "ended":
        return str(job["state"])
    if job["how"] in SHOWN.by_name:
        return str(job["how"])
    return "failed" if job["code"] else "finished"


def _cancel(words: list[str], state: State) -> int:
    _, numbers = long_options(words, {}, {}, _unknown("cancel"))
    code = 0
    for number in numbers:
        if not state.ask(number, "cancelled"):
            answer = "not there" if state.read(number) is None else "inactive"
            print(ANSWERS.text(answer, None, job=number), file=sys.stderr)
            code = 1
    return code


COMMANDS = {"flux": flux}
